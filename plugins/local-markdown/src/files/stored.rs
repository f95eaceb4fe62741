//! Files in the binding's storage. Beside the content of each file is its state, and that of each
//! folder above it, all written in one batch.

use memhost_sdk::storage::{self, Batch};
use memhost_sdk::types::Error;

use super::{Listing, Stamp, Write, folder};

/// The keys of contents, of the states of files, and of those of folders.
const CONTENT: &str = "markdown/content/";
const FILE: &str = "markdown/file/";
const FOLDER: &str = "markdown/folder/";
/// The key of the number of the last change.
const CHANGES: &[u8] = b"markdown/changes";

#[derive(Debug, Default)]
pub(crate) struct Stored {
    /// The number of the last change, once it was read.
    changes: Option<u64>,
}

fn key(kind: &str, path: &str) -> Vec<u8> {
    [kind, path].concat().into_bytes()
}

fn decode(value: &[u8]) -> Option<Stamp> {
    postcard::from_bytes(value).ok()
}

fn encode(stamp: Stamp) -> Result<Vec<u8>, Error> {
    postcard::to_allocvec(&stamp).map_err(|error| Error::internal(error.to_string()))
}

impl Stored {
    /// Whether files are kept here.
    pub(super) fn is_begun() -> Result<bool, Error> {
        Ok(storage::get(CHANGES)?.is_some())
    }

    /// Files are kept here from now on.
    pub(super) fn begin() -> Result<Self, Error> {
        storage::compare_and_swap(CHANGES, None, Some(&0_u64.to_le_bytes()))?;
        Ok(Self::default())
    }

    pub(super) fn stamp(&self, path: &str) -> Result<Option<Stamp>, Error> {
        let known =
            |kind| Ok::<_, Error>(storage::get(key(kind, path))?.as_deref().and_then(decode));
        if path.is_empty() {
            // The root is there before it has a file.
            return Ok(Some(known(FOLDER)?.unwrap_or_default()));
        }
        match known(FILE)? {
            Some(file) => Ok(Some(file)),
            None => known(FOLDER),
        }
    }

    pub(super) fn list(&self, folder: &str) -> Result<Option<Listing>, Error> {
        if self.stamp(folder)?.is_none() {
            return Ok(None);
        }
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let below = |kind: &str| -> Result<Vec<String>, Error> {
            let mut found = Vec::new();
            for entry in storage::scan(key(kind, &prefix)) {
                let path = String::from_utf8_lossy(&entry?.0[kind.len()..]).into_owned();
                let name = &path[prefix.len()..];
                if !name.is_empty() && !name.contains('/') {
                    found.push(path);
                }
            }
            Ok(found)
        };
        Ok(Some(Listing { folders: below(FOLDER)?, files: below(FILE)? }))
    }

    pub(super) fn read(&self, path: &str) -> Result<Option<(String, Stamp)>, Error> {
        let Some(content) = storage::get(key(CONTENT, path))? else { return Ok(None) };
        let Some(stamp) = storage::get(key(FILE, path))?.as_deref().and_then(decode) else {
            return Ok(None);
        };
        Ok(String::from_utf8(content).ok().map(|content| (content, stamp)))
    }

    pub(super) fn remove(&mut self, path: &str) -> Result<(), Error> {
        let mut change = self.change()?;
        change.delete(path);
        self.apply(change, [path])
    }

    pub(super) fn rename(&mut self, path: &str, new: &str) -> Result<(), Error> {
        let Some((content, _)) = self.read(path)? else { return Ok(()) };
        let mut change = self.change()?;
        change.delete(path);
        change.put(new, content)?;
        self.apply(change, [path, new])
    }

    pub(super) fn write_all(&mut self, writes: &[Write]) -> Result<Vec<Stamp>, Error> {
        let mut change = self.change()?;
        let mut stamps = Vec::with_capacity(writes.len());
        for write in writes {
            stamps.push(change.put(&write.path, write.content.clone())?);
        }
        self.apply(change, writes.iter().map(|write| write.path.as_str()))?;
        Ok(stamps)
    }

    fn change(&mut self) -> Result<Change, Error> {
        let last = match self.changes {
            Some(last) => last,
            None => storage::get(CHANGES)?
                .and_then(|value| Some(u64::from_le_bytes(value.try_into().ok()?)))
                .unwrap_or(0),
        };
        self.changes = Some(last);
        Ok(Change { number: last + 1, batch: Batch::new() })
    }

    /// Writes a change with the states of the folders above these paths.
    fn apply<'a>(
        &mut self,
        Change { number, mut batch }: Change,
        paths: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), Error> {
        let state = encode(Stamp { modified_ns: number, bytes: 0 })?;
        let mut folders = std::collections::BTreeSet::from([""]);
        for path in paths {
            let mut above = folder(path);
            while folders.insert(above) {
                above = folder(above);
            }
        }
        for folder in folders {
            batch.put_raw(key(FOLDER, folder), state.clone());
        }
        batch.put_raw(CHANGES.to_vec(), number.to_le_bytes().to_vec());
        batch.apply()?;
        self.changes = Some(number);
        Ok(())
    }
}

/// What is written in one batch.
struct Change {
    number: u64,
    batch: Batch,
}

impl Change {
    fn put(&mut self, path: &str, content: String) -> Result<Stamp, Error> {
        let stamp = Stamp { modified_ns: self.number, bytes: content.len() as u64 };
        self.batch.put_raw(key(CONTENT, path), content.into_bytes());
        self.batch.put_raw(key(FILE, path), encode(stamp)?);
        Ok(stamp)
    }

    fn delete(&mut self, path: &str) {
        self.batch.delete_raw(key(CONTENT, path));
        self.batch.delete_raw(key(FILE, path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &str, content: &str) -> Write {
        Write { path: path.to_owned(), content: content.to_owned(), replaces: false }
    }

    #[test]
    fn files_are_kept_listed_renamed_and_removed_and_their_folders_change_with_them() {
        memhost_sdk::testing::reset(serde_json::json!({}));
        let mut files = Stored::default();
        let root = files.stamp("").unwrap();
        assert!(root.is_some() && files.stamp("a").unwrap().is_none());
        assert!(files.list("a").unwrap().is_none());
        let stamps =
            files.write_all(&[write("a/b/one.md", "one"), write("two.md", "two")]).unwrap();
        assert_eq!(files.stamp("two.md").unwrap(), Some(stamps[1]));
        assert_eq!(files.read("a/b/one.md").unwrap(), Some(("one".to_owned(), stamps[0])));
        assert_ne!(files.stamp("").unwrap(), root);
        let listed = files.list("").unwrap().unwrap();
        assert_eq!((listed.folders, listed.files), (vec!["a".into()], vec!["two.md".into()]));
        let listed = files.list("a").unwrap().unwrap();
        assert_eq!((listed.folders, listed.files), (vec!["a/b".to_owned()], vec![]));

        // After a restart the numbers go on: a file that is written again has another state.
        let mut files = Stored::default();
        let (before, folder) = (files.stamp("a/b/one.md").unwrap(), files.stamp("a/b").unwrap());
        files.write_all(&[write("a/b/one.md", "two")]).unwrap();
        assert_ne!(files.stamp("a/b/one.md").unwrap(), before);
        assert_ne!(files.stamp("a/b").unwrap(), folder);
        files.rename("a/b/one.md", "a/b/first.md").unwrap();
        files.rename("gone.md", "other.md").unwrap();
        assert_eq!(files.list("a/b").unwrap().unwrap().files, ["a/b/first.md"]);
        files.remove("a/b/first.md").unwrap();
        files.remove("gone.md").unwrap();
        assert!(files.read("a/b/first.md").unwrap().is_none());
        assert!(files.list("a/b").unwrap().unwrap().files.is_empty());
        let left = storage::scan(CONTENT).count();
        assert_eq!(left, 1, "what was removed is in no key");
    }
}
