//! The Markdown files of a binding, in the granted directory, or in its storage where it got no
//! directory. Nothing here depends on records.

mod directory;
mod names;
mod stored;
mod transaction;

use memhost_sdk::call::{self, Grant};
use memhost_sdk::storage;
use memhost_sdk::types::Error;

pub(crate) use directory::Directory;
pub(crate) use names::{new_path, renamed};
use stored::Stored;

/// Identifies the state of a file or folder without reading it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Stamp {
    /// Nanoseconds since 1970; in storage the number of the last change.
    pub(crate) modified_ns: u64,
    /// 0 for a folder.
    bytes: u64,
}

/// The content of a folder, as sorted paths relative to the root.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Folders.
    pub(crate) folders: Vec<String>,
    /// Markdown files.
    pub(crate) files: Vec<String>,
}

/// A file to write.
#[derive(Debug)]
pub(crate) struct Write {
    /// Its path, relative to the root.
    pub(crate) path: String,
    /// Its content.
    pub(crate) content: String,
    /// Whether there is a file at the path.
    pub(crate) replaces: bool,
}

/// The files of a binding.
#[derive(Debug)]
pub(crate) enum Files {
    /// In a directory, where people change them, too.
    Directory(Directory),
    /// In storage, where only this provider changes them.
    Stored(Stored),
}

impl Files {
    /// In storage where they are there already, else in the granted directory. A binding without
    /// files that got no directory begins in storage.
    ///
    /// # Errors
    /// Where the files are in a directory that is not granted any more.
    pub(crate) fn open(durable: bool) -> Result<Self, Error> {
        if Stored::is_begun()? {
            return Ok(Self::Stored(Stored::default()));
        }
        if call::grants().iter().any(|grant| matches!(grant, Grant::Directory(_))) {
            return Ok(Self::Directory(Directory::new(memhost_sdk::directory(), durable)));
        }
        if has_index()? {
            return Err(Error::unsupported(
                "the binding's records are in its directory, which is not granted any more; grant \
                 the directory again",
            ));
        }
        Ok(Self::Stored(Stored::begin()?))
    }

    /// Whether only this provider changes them.
    pub(crate) fn are_ours(&self) -> bool {
        matches!(self, Self::Stored(_))
    }

    /// The state of a file or folder; none if it does not exist. The root is the empty path.
    pub(crate) fn stamp(&self, path: &str) -> Result<Option<Stamp>, Error> {
        match self {
            Self::Directory(files) => Ok(files.stamp(path)?),
            Self::Stored(files) => files.stamp(path),
        }
    }

    /// The content of a folder; none if it does not exist, or may not be read.
    pub(crate) fn list(&self, folder: &str) -> Result<Option<Listing>, Error> {
        match self {
            Self::Directory(files) => Ok(files.list(folder)?),
            Self::Stored(files) => files.list(folder),
        }
    }

    /// A file's content and state, of a long file its beginning. None if it does not exist, may not
    /// be read or is not UTF-8.
    pub(crate) fn read(&self, path: &str) -> Result<Option<(String, Stamp)>, Error> {
        match self {
            Self::Directory(files) => Ok(files.read(path)?),
            Self::Stored(files) => files.read(path),
        }
    }

    /// Removes a file; one that is gone is no error.
    pub(crate) fn remove(&mut self, path: &str) -> Result<(), Error> {
        match self {
            Self::Directory(files) => Ok(files.remove(path)?),
            Self::Stored(files) => files.remove(path),
        }
    }

    /// Gives a file another name; one that is gone is no error.
    pub(crate) fn rename(&mut self, path: &str, new: &str) -> Result<(), Error> {
        match self {
            Self::Directory(files) => Ok(files.rename(path, new)?),
            Self::Stored(files) => files.rename(path, new),
        }
    }

    /// Completes or undoes the writes that a crash interrupted. Answers whether files may have
    /// changed.
    pub(crate) fn repair(&mut self) -> Result<bool, Error> {
        match self {
            Self::Directory(files) => Ok(files.repair()?),
            // A batch is written whole or not at all.
            Self::Stored(_) => Ok(false),
        }
    }

    /// Writes files, all of them or none, and answers their states, in their order.
    pub(crate) fn write_all(&mut self, writes: &[Write]) -> Result<Vec<Stamp>, Error> {
        match self {
            Self::Directory(files) => Ok(files.write_all(writes)?),
            Self::Stored(files) => files.write_all(writes),
        }
    }

    /// Flushes the names in the folders of these paths, each once: one that was removed does not
    /// come back after a power failure.
    pub(crate) fn flush_folders<'a>(&self, paths: impl Iterator<Item = &'a str>) {
        if let Self::Directory(files) = self {
            files.flush_folders(paths);
        }
    }
}

/// Whether the storage has an index, which a directory's files got at the first opening.
fn has_index() -> Result<bool, Error> {
    Ok(storage::get("head")?.is_some())
}

/// Says something of a file in the log, once: the same is found at every look.
pub(crate) fn tell(path: &str, what: &str) {
    // A name may have a line break.
    memhost_sdk::warn_once(&format!("{} {what}", path.escape_debug()));
}

/// The folder of a path; empty for the root.
pub(crate) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}
