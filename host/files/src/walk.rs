//! Everything below a directory, while somebody may change it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Stat;

use crate::directory::{Directory, is_gone, kind};
use crate::listing::{Kind, Listing};

/// How deep directories are looked into. Each level keeps two files open, and a provider may nest
/// its directories as often as it may have files.
pub const MAX_DEPTH: usize = 128;

/// One thing that was found.
pub struct Found<'a> {
    /// The open directory that it is in.
    pub directory: &'a Directory,
    /// Its name there.
    pub name: &'a OsStr,
    /// Its path from where the walk began.
    pub path: &'a Path,
    /// Its kind.
    pub kind: Kind,
    pub(crate) stat: Stat,
}

impl Found<'_> {
    /// Its apparent size, in bytes.
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }

    /// Its permissions, such as 0o644.
    pub fn mode(&self) -> u32 {
        self.stat.st_mode & 0o7777
    }

    /// The id of its owner.
    pub fn owner(&self) -> u32 {
        self.stat.st_uid
    }
}

/// How a walk goes on after something was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Into it, if it is a directory.
    Into,
    /// Past it.
    Past,
    /// Not at all.
    Stop,
}

impl Directory {
    /// The BLAKE3 hash of every regular file below, in hex, by its path.
    ///
    /// # Errors
    /// Where a file or directory cannot be read.
    pub fn digests(&self) -> io::Result<BTreeMap<PathBuf, String>> {
        let mut digests = BTreeMap::new();
        self.walk(|one| {
            if one.kind == Kind::File
                && let Some(mut file) = one.directory.file(one.name)?
            {
                let mut hasher = blake3::Hasher::new();
                io::copy(&mut file, &mut hasher)?;
                digests.insert(one.path.to_owned(), hasher.finalize().to_hex().to_string());
            }
            Ok(Then::Into)
        })?;
        Ok(digests)
    }

    /// Visits everything below, a directory before what it holds. What vanishes meanwhile is left
    /// out. Answers false where something is deeper than [`MAX_DEPTH`]; it was not visited.
    ///
    /// # Errors
    /// Where a directory cannot be read, and those of `visit`.
    pub fn walk(&self, mut visit: impl FnMut(&Found<'_>) -> io::Result<Then>) -> io::Result<bool> {
        let (mut path, mut is_whole) = (PathBuf::new(), true);
        // The first level is this directory, which the stack does not own.
        let mut levels: Vec<(Option<Directory>, Listing)> = vec![(None, self.list()?)];
        loop {
            let depth = levels.len();
            let Some((level, listing)) = levels.last_mut() else { return Ok(is_whole) };
            let Some(entry) = listing.next_entry()? else {
                levels.pop();
                path.pop();
                continue;
            };
            let directory = level.as_ref().unwrap_or(self);
            let Some(stat) = directory.stat(&entry.name)? else { continue };
            path.push(&entry.name);
            let kind = kind(&stat);
            let then = visit(&Found { directory, name: &entry.name, path: &path, kind, stat })?;
            if then == Then::Stop {
                return Ok(is_whole);
            }
            let into = match kind == Kind::Directory && then == Then::Into {
                true if depth > MAX_DEPTH => {
                    is_whole = false;
                    None
                }
                true => directory.find_below(&entry.name)?,
                false => None,
            };
            let next =
                into.map(|next| next.list().map(|listing| (Some(next), listing))).transpose();
            match next {
                Ok(Some(next)) => levels.push(next),
                Ok(None) => drop(path.pop()),
                Err(error) if is_gone(&error) => drop(path.pop()),
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_special_files_are_named_and_not_entered() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(place.path().join("secret"), "secret").unwrap();
        std::fs::write(root.join("sub/file"), "text").unwrap();
        std::os::unix::fs::symlink(place.path(), root.join("out")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        let directory = Directory::open(&root).unwrap();
        let mut found = Vec::new();
        let is_whole = directory.walk(|one| {
            found.push((one.path.display().to_string(), one.kind, one.bytes()));
            Ok(Then::Into)
        });
        found.retain(|(name, ..)| name != "sub");
        found.sort_by(|one, other| one.0.cmp(&other.0));
        let out = place.path().as_os_str().len() as u64;
        let expected =
            [("out", Kind::Link, out), ("pipe", Kind::Special, 0), ("sub/file", Kind::File, 4)];
        assert_eq!(found, expected.map(|(name, kind, bytes)| (name.to_owned(), kind, bytes)));
        assert!(is_whole.unwrap());
        for name in ["out", "pipe", "sub", "gone"] {
            assert!(directory.file(name.as_ref()).unwrap().is_none(), "{name}");
        }
        for name in ["..", ".", "sub/file", "/etc/passwd", ""] {
            assert!(directory.file(name.as_ref()).is_err(), "{name}");
            assert!(directory.remove_all(name.as_ref()).is_err(), "{name}");
        }
    }
}
