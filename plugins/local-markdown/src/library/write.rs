//! Writes and removes records: first the files, then the index in memory, then the stored index.
//! After a crash in between, the folder's state shows the change when the directory is opened, as
//! after a change by hand.

use std::collections::{BTreeSet, HashMap};

use memhost_sdk::types::Error;

use super::Library;
use crate::files::{Write, folder, new_path, renamed};
use crate::index::DocId;
use crate::record::{Record, instant};

impl Library {
    /// Writes records under their ids, all of them or none, and indexes them.
    pub(crate) fn write(&mut self, records: &[(String, Record)]) -> Result<(), Error> {
        let mut sizes: HashMap<String, usize> = HashMap::new();
        let mut writes: Vec<Write> = Vec::with_capacity(records.len());
        let mut taken: BTreeSet<String> = BTreeSet::new();
        let mut renames: Vec<(String, String)> = Vec::new();
        for (id, record) in records {
            let mut present = self.find(id).map(|(_, doc)| doc.path.to_string());
            let replaces = present.is_some();
            // A name has the first words of the text: it would keep what was replaced.
            let is_named = record.front.id.as_deref() == Some(id);
            let new = present
                .as_deref()
                .filter(|_| is_named)
                .and_then(|path| renamed(path, &record.text));
            if let (Some(path), Some(new)) =
                (&mut present, new.filter(|new| self.index.by_path(new).is_none()))
            {
                renames.push((std::mem::replace(path, new.clone()), new));
            }
            let path = present.unwrap_or_else(|| self.path_for(id, record, &sizes, &taken));
            if !replaces {
                *sizes.entry(folder(&path).to_owned()).or_default() += 1;
                taken.insert(path.clone());
            }
            writes.push(Write { path, content: record.encode(), replaces });
        }
        let folders = self.before_change(writes.iter().map(|write| write.path.as_str()))?;
        for (path, new) in &renames {
            self.files.rename(path, new)?;
        }
        let stamps = self.files.write_all(&writes)?;
        for ((write, stamp), (_, record)) in writes.iter().zip(stamps).zip(records) {
            self.insert(&write.path, stamp, record)?;
        }
        self.after_change(&folders)?;
        self.save()
    }

    /// Removes records with their files.
    pub(crate) fn remove(&mut self, docs: &[DocId]) -> Result<(), Error> {
        let paths: Vec<String> = docs
            .iter()
            .filter_map(|doc| self.index.doc(*doc))
            .map(|doc| doc.path.to_string())
            .collect();
        let folders = self.before_change(paths.iter().map(String::as_str))?;
        let removed = docs.iter().zip(&paths).try_for_each(|(doc, path)| {
            self.files.remove(path)?;
            self.drop_doc(*doc);
            Ok::<(), Error>(())
        });
        self.files.flush_folders(paths.iter().map(String::as_str));
        self.after_change(&folders)?;
        self.save()?;
        removed
    }

    fn path_for(
        &self,
        id: &str,
        record: &Record,
        sizes: &HashMap<String, usize>,
        taken: &BTreeSet<String>,
    ) -> String {
        let front = &record.front;
        let at = front
            .occurred_at
            .as_deref()
            .or(front.created_at.as_deref())
            .and_then(instant)
            .unwrap_or_default();
        new_path(
            at,
            &record.text,
            id,
            |folder| self.folders.size(folder) + sizes.get(folder).copied().unwrap_or(0),
            |path| self.index.by_path(path).is_some() || taken.contains(path),
        )
    }

    /// The folders that a write will change, each with whether it is unchanged since it was listed.
    fn before_change<'a>(
        &self,
        paths: impl Iterator<Item = &'a str>,
    ) -> Result<Vec<(String, bool)>, Error> {
        let mut folders = BTreeSet::new();
        for path in paths {
            let mut path = folder(path);
            while folders.insert(path) && self.folders.get(path).is_none() && !path.is_empty() {
                path = folder(path);
            }
        }
        let unchanged = |path: &str| -> Result<bool, Error> {
            let stamp = self.files.stamp(path)?;
            Ok(match self.folders.get(path) {
                Some(folder) => stamp.is_some() && stamp == folder.listed,
                None => stamp.is_none(),
            })
        };
        folders.into_iter().map(|path| Ok((path.to_owned(), unchanged(path)?))).collect()
    }

    /// Keeps folders from being listed again because of our own write.
    fn after_change(&mut self, folders: &[(String, bool)]) -> Result<(), Error> {
        for (path, is_ours) in folders {
            let stamp = if *is_ours { self.files.stamp(path)? } else { None };
            self.folders.set(path, stamp);
        }
        Ok(())
    }
}
