//! Copies of a tree, and of what changed in it since.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::directory::Directory;
use crate::listing::Kind;
use crate::walk::Then;

/// The size and the time of a file when it was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    bytes: u64,
    modified: Option<SystemTime>,
}

/// The contents of a copy: files by path, and directories that were too deep to be copied.
#[derive(Debug, Default)]
pub struct Copied {
    /// Regular files, by their path in the copy.
    pub files: BTreeMap<PathBuf, Seen>,
    /// Whether something was left out because it is deeper than [`crate::MAX_DEPTH`].
    pub is_cut: bool,
}

impl Directory {
    /// Copies the regular files of this directory into the directory `name` of `to`, with modes
    /// 0700 and 0600. Files that `known` has unchanged are not copied again; files that it has and
    /// that are gone are removed from the copy. Links and special files are left out. What is
    /// copied goes into `copied`.
    ///
    /// # Errors
    /// Where a file cannot be read or written, with its path.
    pub fn copy_changed(
        &self,
        name: &str,
        to: &Self,
        known: &Copied,
        copied: &mut Copied,
    ) -> io::Result<()> {
        let name = OsStr::new(name);
        let known_below = |path: &Path| path.starts_with(Path::new(name));
        let (mut found, target) = (BTreeMap::new(), to.make_below(name)?);
        let is_whole = self.walk(|one| {
            if one.kind != Kind::File {
                return Ok(Then::Into);
            }
            let path = Path::new(name).join(one.path);
            let in_path = |error: io::Error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            };
            let Some(mut file) = one.directory.file(one.name).map_err(in_path)? else {
                return Ok(Then::Past);
            };
            // From the open file: another one may have the name by now.
            let metadata = file.metadata()?;
            let seen = Seen { bytes: metadata.len(), modified: metadata.modified().ok() };
            if known.files.get(&path) != Some(&seen) {
                let parent = target
                    .make_path(one.path.parent().unwrap_or(Path::new("")))
                    .map_err(in_path)?;
                let mut copy = parent.create(one.name).map_err(in_path)?;
                io::copy(&mut file, &mut copy).map_err(in_path)?;
            }
            found.insert(path, seen);
            Ok(Then::Past)
        })?;
        copied.is_cut |= !is_whole;
        for path in
            known.files.keys().filter(|path| known_below(path) && !found.contains_key(*path))
        {
            to.forget(path)?;
        }
        copied.files.extend(found);
        Ok(())
    }

    /// Removes a file by its path, if it is there.
    fn forget(&self, path: &Path) -> io::Result<()> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
        // A file that took the name of its directory is part of the copy.
        let Some(parent) = self.find_path(parent)? else { return Ok(()) };
        // A directory that took the file's name is part of the copy.
        match parent.stat(name)? {
            Some(found) if crate::directory::kind(&found) == Kind::File => parent.remove_all(name),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_follows_what_changes_and_no_link() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        for name in ["sub", "becomes-a-file"] {
            std::fs::create_dir_all(from.join("memory").join(name)).unwrap();
        }
        std::fs::create_dir(&to).unwrap();
        std::fs::write(place.path().join("secret"), "secret").unwrap();
        for name in ["kept", "gone", "sub/changed", "becomes-a-directory", "becomes-a-file/file"] {
            std::fs::write(from.join("memory").join(name), name).unwrap();
        }
        std::os::unix::fs::symlink(place.path(), from.join("memory/out")).unwrap();
        std::os::unix::fs::symlink("../../secret", from.join("memory/secret")).unwrap();
        let (source, target) =
            (Directory::open(&from.join("memory")).unwrap(), Directory::open(&to).unwrap());
        let mut first = Copied::default();
        source.copy_changed("memory", &target, &Copied::default(), &mut first).unwrap();
        assert_eq!(first.files.len(), 5);
        std::fs::remove_file(from.join("memory/gone")).unwrap();
        std::fs::write(from.join("memory/sub/changed"), "changed to something else").unwrap();
        std::fs::remove_file(from.join("memory/becomes-a-directory")).unwrap();
        std::fs::create_dir(from.join("memory/becomes-a-directory")).unwrap();
        std::fs::write(from.join("memory/becomes-a-directory/file"), "new").unwrap();
        std::fs::remove_dir_all(from.join("memory/becomes-a-file")).unwrap();
        std::fs::write(from.join("memory/becomes-a-file"), "new").unwrap();
        let mut second = Copied::default();
        source.copy_changed("memory", &target, &first, &mut second).unwrap();
        let names: Vec<_> = second.files.keys().map(|path| path.display().to_string()).collect();
        let expected = ["becomes-a-directory/file", "becomes-a-file", "kept", "sub/changed"];
        assert_eq!(names, expected.map(|name| format!("memory/{name}")));
        let mut there = Vec::new();
        let whole = target.walk(|one| {
            let mode = if one.kind == Kind::Directory { 0o700 } else { 0o600 };
            assert_eq!(one.mode(), mode, "{}", one.path.display());
            there.extend((one.kind != Kind::Directory).then(|| one.path.display().to_string()));
            Ok(Then::Into)
        });
        there.sort();
        assert_eq!((whole.unwrap(), there), (true, names));
        assert!(
            std::fs::read_to_string(to.join("memory/sub/changed"))
                .unwrap()
                .starts_with("changed to")
        );
    }
}
