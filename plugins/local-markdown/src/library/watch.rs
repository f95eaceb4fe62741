//! Finds changes by hand. In a small directory every call checks all files. In a large one each call checks a part, so
//! that a call costs the same for any number of records. Checking one file is a call to the host and costs more than
//! scoring a thousand records.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use memhost_sdk::types::Error;

use super::Library;
use crate::index::DocId;

/// How many files and how many folders every call checks.
const OFTEN: usize = 16;
/// How many it checks if there was no such check for [`QUIET`]. Calls that are so rare come from a person, who may have
/// edited files.
const SELDOM: usize = 128;
const QUIET: Duration = Duration::from_secs(1);
/// After this many calls a folder is listed although it seems unchanged.
const LISTING: u64 = 1_024;
/// How many files are read before the index is stored, so that a call that runs out of time has made progress.
const PROGRESS: usize = 500;

impl Library {
    /// Updates the index from the changes by hand that this call finds.
    pub(crate) fn refresh(&mut self) -> Result<(), Error> {
        self.calls += 1;
        let is_quiet = self.looked.is_none_or(|looked| looked.elapsed() >= QUIET);
        if is_quiet {
            self.looked = Some(Instant::now());
        }
        let count = if is_quiet { SELDOM } else { OFTEN };
        let paths = self.folders.next(count);
        let forced = self.calls.is_multiple_of(LISTING);
        for (number, path) in paths.iter().enumerate() {
            if forced && number == 0 {
                self.folders.doubt(path);
            }
            self.look_at_folder(path)?;
        }
        self.look_at_files(count)?;
        self.save()
    }

    /// All folders, as after a restart.
    pub(super) fn look_at_every_folder(&mut self) -> Result<(), Error> {
        if self.folders.get("").is_none() {
            self.folders.doubt("");
        }
        for path in self.folders.paths() {
            self.look_at_folder(&path)?;
        }
        Ok(())
    }

    fn look_at_files(&mut self, count: usize) -> Result<(), Error> {
        let slots = DocId::try_from(self.index.slots()).unwrap_or(DocId::MAX);
        let count = slots.min(DocId::try_from(count).unwrap_or(DocId::MAX));
        for _ in 0..count {
            self.looked_at = if self.looked_at + 1 >= slots { 0 } else { self.looked_at + 1 };
            let Some(doc) = self.index.doc(self.looked_at) else { continue };
            let path = doc.path.to_string();
            self.look_at_file(&path)?;
        }
        Ok(())
    }

    fn look_at_file(&mut self, path: &str) -> Result<(), Error> {
        let known = self.index.by_path(path).and_then(|doc| self.index.doc(doc)).map(|doc| doc.stamp);
        if known.is_none() || self.files.stamp(path)? != known {
            self.reindex(path)?;
        }
        Ok(())
    }

    fn look_at_folder(&mut self, path: &str) -> Result<(), Error> {
        let Some(known) = self.folders.get(path) else { return Ok(()) };
        let stamp = self.files.stamp(path)?;
        if stamp.is_some() && stamp == known.listed {
            return Ok(());
        }
        // The state is read before the listing, so that the next call finds changes made meanwhile.
        let Some((stamp, listing)) = stamp.zip(self.files.list(path)?) else {
            self.drop_folder(path);
            return Ok(());
        };
        for below in self.folders.below(path) {
            if listing.folders.binary_search(&below).is_err() {
                self.drop_folder(&below);
            }
        }
        let present: HashSet<&str> = listing.files.iter().map(String::as_str).collect();
        let docs = self.folders.get(path).map(|folder| folder.docs.clone()).unwrap_or_default();
        for doc in docs {
            if self.index.doc(doc).is_some_and(|known| !present.contains(&*known.path)) {
                self.drop_doc(doc);
            }
        }
        for (number, file) in listing.files.iter().enumerate() {
            self.look_at_file(file)?;
            if number % PROGRESS == PROGRESS - 1 {
                self.save()?;
            }
        }
        self.folders.set(path, Some(stamp));
        for below in &listing.folders {
            if self.folders.get(below).is_none() {
                self.folders.doubt(below);
                self.look_at_folder(below)?;
            }
        }
        Ok(())
    }

    fn drop_folder(&mut self, path: &str) {
        for below in self.folders.below(path) {
            self.drop_folder(&below);
        }
        for doc in self.folders.remove(path) {
            self.drop_doc(doc);
        }
    }
}
