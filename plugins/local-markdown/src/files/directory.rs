//! Files in the granted directory. Hidden files and folders, such as `.git`, are ignored, and links
//! are not followed.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Result};
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use super::{Listing, Stamp, tell};

/// How deep folders are read.
const DEEPEST: usize = 16;
/// So much of a file is read, in bytes: the longest text of a record, and what is above it.
const READ_BYTES: u64 = 2 << 20;
/// A path must also fit where the index keeps it.
const LONGEST_PATH: usize = 900;

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Result<Self> {
        let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self {
            modified_ns: u64::try_from(modified.as_nanos()).unwrap_or(u64::MAX),
            bytes: if metadata.is_dir() { 0 } else { metadata.len() },
        })
    }
}

/// The binding's directory.
#[derive(Debug)]
pub(crate) struct Directory {
    /// Its path.
    pub(super) root: PathBuf,
    /// Whether writes wait for the disk.
    pub(super) durable: bool,
    /// The number of temporary files so far.
    pub(super) written: u64,
}

impl Directory {
    /// In this directory.
    pub(crate) fn new(root: PathBuf, durable: bool) -> Self {
        Self { root, durable, written: 0 }
    }

    /// The state of a file or folder; none if it does not exist. The root is the empty path.
    pub(crate) fn stamp(&self, path: &str) -> Result<Option<Stamp>> {
        gone_is_none(fs::symlink_metadata(self.at(path)).and_then(|metadata| Stamp::of(&metadata)))
    }

    /// The content of a folder; none if it does not exist, or may not be read.
    pub(crate) fn list(&self, folder: &str) -> Result<Option<Listing>> {
        let entries = match fs::read_dir(self.at(folder)) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied && !folder.is_empty() => {
                tell(folder, &format!("is left out: {error}; make it readable for the host"));
                return Ok(None);
            }
            entries => gone_is_none(entries)?,
        };
        let Some(entries) = entries else { return Ok(None) };
        let mut listing = Listing::default();
        for entry in entries {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if name.starts_with('.') || path.len() > LONGEST_PATH {
                continue;
            }
            // Gone since it was listed.
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && path.matches('/').count() < DEEPEST {
                listing.folders.push(path);
            } else if kind.is_file() && name.ends_with(".md") {
                listing.files.push(path);
            }
        }
        listing.folders.sort_unstable();
        listing.files.sort_unstable();
        Ok(Some(listing))
    }

    /// A file's content and state, of a long file its beginning. None if it does not exist, may not
    /// be read or is not UTF-8.
    pub(crate) fn read(&self, path: &str) -> Result<Option<(String, Stamp)>> {
        let mut file = match File::open(self.at(path)) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                tell(path, &format!("is left out: {error}; make it readable for the host"));
                return Ok(None);
            }
            file => match gone_is_none(file)? {
                Some(file) => file,
                None => return Ok(None),
            },
        };
        let metadata = file.metadata()?;
        let mut bytes = vec![0; usize::try_from(metadata.len().min(READ_BYTES)).unwrap_or(0)];
        let mut filled = 0;
        // Not `read_to_end`: it asks once more to see the end, and every call goes through the
        // host.
        while filled < bytes.len() {
            match file.read(&mut bytes[filled..])? {
                0 => break,
                read => filled += read,
            }
        }
        bytes.truncate(filled);
        if let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
            && metadata.len() > READ_BYTES
        {
            // The last character was cut.
            bytes.truncate(error.valid_up_to());
        }
        match String::from_utf8(bytes) {
            Ok(content) => Ok(Some((content, Stamp::of(&metadata)?))),
            Err(_) => {
                tell(path, "is not UTF-8 and is left out; save it as UTF-8");
                Ok(None)
            }
        }
    }

    /// Removes a file; one that is gone is no error.
    pub(crate) fn remove(&self, path: &str) -> Result<()> {
        gone_is_none(fs::remove_file(self.at(path))).map(drop)
    }

    /// Gives a file another name; one that is gone is no error.
    pub(crate) fn rename(&self, path: &str, new: &str) -> Result<()> {
        gone_is_none(fs::rename(self.at(path), self.at(new))).map(drop)
    }

    pub(super) fn at(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.root.clone() } else { self.root.join(path) }
    }
}

fn gone_is_none<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
