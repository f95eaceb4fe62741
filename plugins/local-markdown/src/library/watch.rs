//! Finds changes by hand. Every file and folder is checked once in an interval while calls come, a
//! part of them in each call, by the time since the last check. So a call costs about the same for
//! any number of records, and many calls at a time cost no more checks than few.

use std::collections::HashSet;
use std::rc::Rc;
use std::time::{Duration, Instant};

use memhost_sdk::types::Error;

use super::Library;
use crate::index::DocId;

/// The most files and folders that a call checks, also the first one after a pause.
const MOST: usize = 2_048;
/// How many are checked in a second at most. The rest of a larger directory takes longer than the
/// interval.
const A_SECOND: f64 = 10_000.0;
/// A call checks at least this many of those that are due, and half of the others: then no call
/// takes long, and no check is late by more than a few calls.
const AT_LEAST: usize = 128;
/// With exact clocks the time between two calls is short. Nothing is due before this time is over.
const STEP: Duration = Duration::from_millis(5);
/// How often a folder is listed although it seems unchanged.
const LISTING: Duration = Duration::from_secs(10);
/// How many files are read before the index is stored, so that a call that runs out of time has
/// made progress.
const PROGRESS: usize = 500;

/// The times at which files were checked.
#[derive(Debug)]
pub(super) struct Watch {
    /// In how much time everything is checked once.
    every: Duration,
    /// The time of this call.
    pub(super) now: Instant,
    /// When it was last counted how many checks are due.
    counted: Option<Instant>,
    /// When a folder was last listed although it seemed unchanged.
    listed: Instant,
    files: Due,
    folders: Due,
    /// The last file that was checked.
    at: DocId,
}

/// Checks that are due.
#[derive(Debug, Default)]
struct Due(f64);

impl Due {
    /// Adds what became due in a share of the interval, and answers how many a call should do. Not
    /// more become due than there are.
    #[allow(clippy::cast_precision_loss, reason = "a count for a share")]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to a count")]
    fn take(&mut self, all: usize, since: f64, every: f64) -> usize {
        let added = if every > 0.0 { (all as f64 * since / every).max(1.0) } else { all as f64 };
        // All that are due after a pause, whatever a second may cost.
        let bound = if since < every { since * A_SECOND } else { all as f64 };
        self.0 = (self.0 + added.min(bound.max(1.0))).min(all as f64);
        let due = self.0 as usize;
        let count =
            if since >= every { due.min(MOST) } else { due.min(AT_LEAST.max(due / 2)).min(MOST) };
        self.0 -= count as f64;
        count
    }
}

impl Watch {
    /// Everything is checked once in this time.
    pub(super) fn new(every: Duration) -> Self {
        let now = Instant::now();
        Self {
            every,
            now,
            counted: None,
            listed: now,
            files: Due::default(),
            folders: Due::default(),
            at: 0,
        }
    }

    /// Nothing is checked: only this provider changes the files.
    pub(super) fn never() -> Self {
        Self::new(Duration::MAX)
    }

    /// How many files and folders to check now.
    fn due(&mut self, files: usize, folders: usize) -> (usize, usize) {
        self.now = Instant::now();
        if self.every == Duration::MAX {
            return (0, 0);
        }
        let every = self.every.as_secs_f64();
        let since = match self.counted {
            Some(counted) => self.now.saturating_duration_since(counted).as_secs_f64(),
            None => every,
        };
        if since < STEP.as_secs_f64().min(every) {
            return (0, 0);
        }
        self.counted = Some(self.now);
        (self.files.take(files, since, every), self.folders.take(folders, since, every))
    }
}

impl Library {
    /// Updates the index from the changes by hand that this call finds.
    pub(crate) fn refresh(&mut self) -> Result<(), Error> {
        let (files, folders) = self.watch.due(self.index.slots(), self.folders.len());
        if folders > 0 {
            let is_listed = self.watch.now.saturating_duration_since(self.watch.listed) >= LISTING;
            for (number, path) in self.folders.next(folders).iter().enumerate() {
                if is_listed && number == 0 {
                    self.watch.listed = self.watch.now;
                    self.folders.doubt(path);
                }
                self.look_at_folder(path)?;
            }
        }
        self.look_at_files(files)?;
        self.save()
    }

    /// Whether a record may be answered as it is kept in memory: its file was checked lately, or is
    /// now and is unchanged.
    pub(super) fn is_current(&mut self, doc: DocId) -> Result<bool, Error> {
        if self.kept.get(doc).is_none() {
            return Ok(false);
        }
        if self.kept.fresh(doc, self.watch.now, self.watch.every) {
            return Ok(true);
        }
        let Some(known) = self.index.doc(doc) else { return Ok(false) };
        let is_same = self.files.stamp(&known.path)? == Some(known.stamp);
        if is_same {
            self.kept.saw(doc, self.watch.now);
        }
        Ok(is_same)
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
            self.watch.at = if self.watch.at + 1 >= slots { 0 } else { self.watch.at + 1 };
            let Some(doc) = self.index.doc(self.watch.at) else { continue };
            let path = Rc::clone(&doc.path);
            self.look_at_file(&path)?;
        }
        Ok(())
    }

    fn look_at_file(&mut self, path: &str) -> Result<(), Error> {
        let known =
            self.index.by_path(path).and_then(|doc| Some((doc, self.index.doc(doc)?.stamp)));
        match known {
            Some((doc, stamp)) if self.files.stamp(path)? == Some(stamp) => {
                self.kept.saw(doc, self.watch.now);
            }
            _ => self.reindex(path)?,
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

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: usize = 10_000;

    #[test]
    fn everything_is_due_once_in_an_interval_however_many_calls_there_are() {
        for calls in [10_u32, 300] {
            let mut due = Due::default();
            let since = 1.5 / f64::from(calls);
            let taken: Vec<usize> = (0..calls).map(|_| due.take(ALL, since, 1.5)).collect();
            let count: usize = taken.iter().sum();
            assert!((ALL * 8 / 10..=ALL).contains(&count), "{count} in {calls}");
            assert!(taken.iter().all(|count| *count <= 1_000), "{taken:?}");
        }
    }

    #[test]
    fn the_first_call_after_a_pause_catches_up() {
        let mut due = Due::default();
        assert_eq!(due.take(1_000, 1.5, 1.5), 1_000);
        assert_eq!(due.take(100_000, 3_600.0, 1.5), MOST);
        assert_eq!(due.take(20, 0.0, 0.0), 20);
        assert_eq!(due.take(0, 9.0, 1.5), 0);
    }

    #[test]
    fn a_large_directory_costs_no_more_than_its_share_of_a_second() {
        let mut due = Due::default();
        let count: usize = (0..100).map(|_| due.take(1_000_000, 0.01, 1.5)).sum();
        assert!(count <= 10_000, "{count}");
    }
}
