//! Record files in the binding's directory: a folder a day, a file a record, written beside and renamed into place.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// A folder that has this many files gets a successor, so that a file manager can still show it.
const FOLDER_FILES: usize = 2_000;
/// Files that are being written; one that is left over is from a crash and holds nothing that was acknowledged.
const TEMPORARY: &str = ".writing-";

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Stamp {
    modified_ns: u64,
    bytes: u64,
}

/// A file that is written and waits for its name.
pub(crate) struct Pending {
    temporary: PathBuf,
    /// Where it will be, relative to the root.
    pub(crate) path: String,
}

/// The binding's directory.
pub(crate) struct Files {
    root: PathBuf,
    durable: bool,
    written: u64,
}

impl Files {
    /// In this directory.
    pub(crate) fn new(root: PathBuf, durable: bool) -> Self {
        Self { root, durable, written: 0 }
    }

    /// The folders with their time of change; hidden ones are not ours.
    pub(crate) fn folders(&self) -> std::io::Result<Vec<(String, Stamp)>> {
        let mut folders = Vec::new();
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if !name.starts_with('.') && entry.file_type()?.is_dir() {
                let stamp = self.stamp(&name)?;
                folders.push((name, stamp));
            }
        }
        folders.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(folders)
    }

    /// The time of change of a folder or the root (an empty name).
    pub(crate) fn stamp(&self, path: &str) -> std::io::Result<Stamp> {
        let metadata = fs::metadata(if path.is_empty() { self.root.clone() } else { self.root.join(path) })?;
        let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Stamp {
            modified_ns: u64::try_from(modified.as_nanos()).unwrap_or(u64::MAX),
            bytes: if metadata.is_dir() { 0 } else { metadata.len() },
        })
    }

    /// The Markdown files of a folder (an empty name: of the root), by relative path. Leftovers of a crash are removed.
    pub(crate) fn list(&self, folder: &str) -> std::io::Result<Vec<String>> {
        let mut files = Vec::new();
        let directory = if folder.is_empty() { self.root.clone() } else { self.root.join(folder) };
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name.starts_with(TEMPORARY) {
                let _ = fs::remove_file(entry.path());
            } else if !name.starts_with('.') && name.ends_with(".md") && entry.file_type()?.is_file() {
                files.push(if folder.is_empty() { name } else { format!("{folder}/{name}") });
            }
        }
        Ok(files)
    }

    /// A file's content and state. None where it is gone or is not text.
    pub(crate) fn read(&self, path: &str) -> std::io::Result<Option<(String, Stamp)>> {
        let absent = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
        let stamp = match self.stamp(path) {
            Ok(stamp) => stamp,
            Err(error) if absent(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        match fs::read(self.root.join(path)) {
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(content) => Ok(Some((content, stamp))),
                Err(_) => {
                    log::warn!("{path} is not UTF-8 and is left out; save it as UTF-8");
                    Ok(None)
                }
            },
            Err(error) if absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A name for a new record: `2026-03-01/093015-the-text-begins-1f2e3d4c5b6a7988.md`.
    pub(crate) fn name(&self, created_at: &str, text: &str, id: &str, folder_sizes: &dyn Fn(&str) -> usize) -> String {
        let day = created_at.get(..10).unwrap_or("undated");
        let time: String = created_at.chars().skip(11).take(8).filter(char::is_ascii_digit).collect();
        let folder = (1..)
            .map(|n| if n == 1 { day.to_owned() } else { format!("{day}.{n}") })
            .find(|folder| folder_sizes(folder) < FOLDER_FILES)
            .unwrap_or_else(|| day.to_owned());
        format!("{folder}/{time}-{}-{:016x}.md", slug(text), hash(id))
    }

    /// Writes a file beside its place.
    pub(crate) fn prepare(&mut self, path: &str, content: &str) -> std::io::Result<Pending> {
        let target = self.root.join(path);
        let folder = target.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder)?;
        self.written += 1;
        let temporary = folder.join(format!("{TEMPORARY}{}", self.written));
        let mut file = File::create(&temporary)?;
        file.write_all(content.as_bytes())?;
        if self.durable {
            file.sync_all()?;
        }
        Ok(Pending { temporary, path: path.to_owned() })
    }

    /// Gives a written file its name.
    pub(crate) fn publish(&self, pending: &Pending) -> std::io::Result<Stamp> {
        fs::rename(&pending.temporary, self.root.join(&pending.path))?;
        self.stamp(&pending.path)
    }

    /// Throws a written file away.
    pub(crate) fn discard(&self, pending: &Pending) {
        let _ = fs::remove_file(&pending.temporary);
    }

    /// Removes a file; one that is gone is no error.
    pub(crate) fn remove(&self, path: &str) -> std::io::Result<()> {
        match fs::remove_file(self.root.join(path)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// The folder of a path; empty for the root.
pub(crate) fn folder(path: &str) -> &str {
    Path::new(path).parent().and_then(Path::to_str).unwrap_or_default()
}

/// The first words, as far as a file name can hold them.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for (_, word) in crate::words::words(text).take(8) {
        let word: String = word.chars().filter(char::is_ascii_alphanumeric).collect();
        if word.is_empty() || slug.len() + word.len() > 40 {
            continue;
        }
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.push_str(&word);
    }
    if slug.is_empty() { "note".to_owned() } else { slug }
}

/// FNV-1a: stable across versions and platforms, which the standard library's hashes are not.
fn hash(id: &str) -> u64 {
    id.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_readable_and_stay_in_the_directory() {
        let files = Files::new(PathBuf::from("/nowhere"), false);
        let name = |text: &str, id: &str| files.name("2026-03-01T09:30:15Z", text, id, &|_| 0);
        let usual = name("The launch, at last: ../../etc", "a");
        assert!(usual.starts_with("2026-03-01/093015-the-launch-at-last-etc-"), "{usual}");
        assert!(name("標識", "x/../y").starts_with("2026-03-01/093015-note-"));
        assert_ne!(name("same", "a"), name("same", "b"));
        let full = |folder: &str| if folder == "2026-03-01" { FOLDER_FILES } else { 0 };
        assert!(files.name("2026-03-01T09:30:15Z", "x", "a", &full).starts_with("2026-03-01.2/"));
    }
}
