//! The folders of the directory, as they were when they were last listed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::files::Stamp;
use crate::index::DocId;

/// A file system's clock may stand still this long: what happened in the same moment as a listing may not show.
const CLOCK: Duration = Duration::from_millis(50);
/// Listing a folder of more files than this again, just for the clock, costs more than it is worth: the rolling look
/// finds what the clock hid.
const SMALL: usize = 128;

/// A folder.
#[derive(Debug, Default)]
pub(super) struct Folder {
    /// Its state when it was listed; none: it is to be listed.
    pub(super) listed: Option<Stamp>,
    /// Its records.
    pub(super) docs: HashSet<DocId>,
}

/// All of them, by path.
#[derive(Debug, Default)]
pub(super) struct Folders {
    all: BTreeMap<String, Folder>,
    /// Whose stored state is out of date.
    dirty: BTreeSet<String>,
    cursor: Option<String>,
}

impl Folders {
    pub(super) fn get(&self, path: &str) -> Option<&Folder> {
        self.all.get(path)
    }

    /// How many records a folder has.
    pub(super) fn size(&self, path: &str) -> usize {
        self.all.get(path).map_or(0, |folder| folder.docs.len())
    }

    pub(super) fn paths(&self) -> Vec<String> {
        self.all.keys().cloned().collect()
    }

    /// The next so many paths, round and round.
    pub(super) fn next(&mut self, count: usize) -> Vec<String> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = self.cursor.take().map_or(Unbounded, Excluded);
        let mut paths: Vec<String> =
            self.all.range::<String, _>((from, Unbounded)).take(count).map(|(path, _)| path.clone()).collect();
        let more = count.min(self.all.len()).saturating_sub(paths.len());
        paths.extend(self.all.keys().take(more).cloned());
        self.cursor = paths.last().cloned();
        paths
    }

    /// Folders right below one.
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

    /// The folder is known and was listed in this state; none: it is to be listed.
    pub(super) fn set(&mut self, path: &str, listed: Option<Stamp>) {
        let folder = self.all.entry(path.to_owned()).or_default();
        let listed = listed.filter(|stamp| folder.docs.len() > SMALL || is_settled(*stamp));
        if folder.listed != listed {
            folder.listed = listed;
            self.dirty.insert(path.to_owned());
        }
    }

    /// As stored.
    pub(super) fn restore(&mut self, path: &str, listed: Stamp) {
        self.all.entry(path.to_owned()).or_default().listed = Some(listed);
    }

    /// The folder is to be listed again.
    pub(super) fn doubt(&mut self, path: &str) {
        self.set(path, None);
    }

    /// All folders are to be listed again.
    pub(super) fn doubt_all(&mut self) {
        self.paths().iter().for_each(|path| self.doubt(path));
    }

    /// The folder is gone; answers its records.
    pub(super) fn remove(&mut self, path: &str) -> Vec<DocId> {
        self.dirty.insert(path.to_owned());
        self.all.remove(path).map(|folder| folder.docs.into_iter().collect()).unwrap_or_default()
    }

    /// The states of all folders are to be stored.
    pub(super) fn mark_all(&mut self) {
        self.dirty.extend(self.all.keys().cloned());
    }

    /// Whose state is to be stored, with that state; they count as stored then.
    pub(super) fn take_dirty(&mut self) -> Vec<(String, Option<Stamp>)> {
        let dirty = std::mem::take(&mut self.dirty);
        dirty.into_iter().map(|path| (path.clone(), self.all.get(&path).and_then(|folder| folder.listed))).collect()
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
    fn folders_come_round_and_know_what_is_below() {
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
