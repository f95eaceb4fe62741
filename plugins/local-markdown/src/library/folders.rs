//! The folders of the directory, in the state of their last listing.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::files::Stamp;
use crate::hash::Seeded;
use crate::index::DocId;

/// The resolution of a file system's clock. A change at the time of a listing may not change the
/// folder's time.
const CLOCK: Duration = Duration::from_millis(50);
/// A folder with more files is not listed again because of the clock's resolution: it would cost
/// too much, and the rolling check finds such changes.
const SMALL: usize = 128;

/// A folder.
#[derive(Debug, Default)]
pub(super) struct Folder {
    /// Its state when it was listed. `None`: it must be listed.
    pub(super) listed: Option<Stamp>,
    /// Its records.
    pub(super) docs: HashSet<DocId, Seeded>,
}

/// All of them, by path.
#[derive(Debug, Default)]
pub(super) struct Folders {
    all: BTreeMap<String, Folder>,
    /// Folders whose stored state is out of date.
    dirty: BTreeSet<String>,
    cursor: Option<String>,
}

impl Folders {
    pub(super) fn get(&self, path: &str) -> Option<&Folder> {
        self.all.get(path)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// How many records a folder has.
    pub(super) fn size(&self, path: &str) -> usize {
        self.all.get(path).map_or(0, |folder| folder.docs.len())
    }

    pub(super) fn paths(&self) -> Vec<String> {
        self.all.keys().cloned().collect()
    }

    /// The next paths, beginning again after the last one.
    pub(super) fn next(&mut self, count: usize) -> Vec<String> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = self.cursor.take().map_or(Unbounded, Excluded);
        let mut paths: Vec<String> = self
            .all
            .range::<String, _>((from, Unbounded))
            .take(count)
            .map(|(path, _)| path.clone())
            .collect();
        let more = count.min(self.all.len()).saturating_sub(paths.len());
        paths.extend(self.all.keys().take(more).cloned());
        self.cursor = paths.last().cloned();
        paths
    }

    /// The direct subfolders of a folder.
    pub(super) fn below(&self, path: &str) -> Vec<String> {
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        self.all
            .range(prefix.clone()..)
            .map(|(below, _)| below)
            .take_while(|below| below.starts_with(&prefix))
            .filter(|below| !below.is_empty() && !below[prefix.len()..].contains('/'))
            .cloned()
            .collect()
    }

    pub(super) fn enter(&mut self, path: &str, doc: DocId) {
        match self.all.get_mut(path) {
            Some(folder) => drop(folder.docs.insert(doc)),
            None => drop(self.all.entry(path.to_owned()).or_default().docs.insert(doc)),
        }
    }

    pub(super) fn leave(&mut self, path: &str, doc: DocId) {
        if let Some(folder) = self.all.get_mut(path) {
            folder.docs.remove(&doc);
        }
    }

    /// Sets the state in which a folder was listed. `None`: it must be listed.
    pub(super) fn set(&mut self, path: &str, listed: Option<Stamp>) {
        let folder = self.all.entry(path.to_owned()).or_default();
        let listed = listed.filter(|stamp| folder.docs.len() > SMALL || is_settled(*stamp));
        if folder.listed != listed {
            folder.listed = listed;
            self.dirty.insert(path.to_owned());
        }
    }

    /// The stored form.
    pub(super) fn restore(&mut self, path: &str, listed: Stamp) {
        self.all.entry(path.to_owned()).or_default().listed = Some(listed);
    }

    /// Marks a folder to be listed again.
    pub(super) fn doubt(&mut self, path: &str) {
        self.set(path, None);
    }

    /// Marks all folders to be listed again.
    pub(super) fn doubt_all(&mut self) {
        self.paths().iter().for_each(|path| self.doubt(path));
    }

    /// Removes a folder and answers its records.
    pub(super) fn remove(&mut self, path: &str) -> Vec<DocId> {
        self.dirty.insert(path.to_owned());
        self.all.remove(path).map(|folder| folder.docs.into_iter().collect()).unwrap_or_default()
    }

    /// Marks the states of all folders to be stored.
    pub(super) fn mark_all(&mut self) {
        self.dirty.extend(self.all.keys().cloned());
    }

    /// The folders whose state must be stored, with that state. They count as stored afterwards.
    pub(super) fn take_dirty(&mut self) -> Vec<(String, Option<Stamp>)> {
        let dirty = std::mem::take(&mut self.dirty);
        dirty
            .into_iter()
            .map(|path| (path.clone(), self.all.get(&path).and_then(|folder| folder.listed)))
            .collect()
    }
}

fn is_settled(stamp: Stamp) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_nanos(stamp.modified_ns) + CLOCK < now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_visited_in_turn_and_know_their_subfolders() {
        let mut folders = Folders::default();
        for path in ["", "a", "a/b", "a/b/c", "ab", "b"] {
            folders.enter(path, 1);
        }
        assert_eq!(folders.next(4), ["", "a", "a/b", "a/b/c"]);
        assert_eq!(folders.next(4), ["ab", "b", "", "a"]);
        assert_eq!(folders.next(100).len(), 6);
        assert_eq!(folders.below(""), ["a", "ab", "b"]);
        assert_eq!(folders.below("a"), ["a/b"]);
    }
}
