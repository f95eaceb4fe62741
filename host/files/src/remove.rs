//! Removal of a tree of any depth, with a bounded number of open files.

use std::ffi::{OsStr, OsString};
use std::io;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::directory::{Directory, one};
use crate::listing::Listing;
use crate::walk::MAX_DEPTH;

/// How often a directory is emptied again, because something came in meanwhile or its file system
/// left entries out.
const TRIES: u32 = 100;
/// How many names are tried for a directory that is moved up.
const NAMES: u64 = 1_000;

impl Directory {
    /// Removes what has this name, with everything in it. A link is removed, and what it points to
    /// stays. Nothing is done where nothing has the name.
    ///
    /// # Errors
    /// Where something cannot be removed.
    pub fn remove_all(&self, name: &OsStr) -> io::Result<()> {
        if self.remove_file(name)? {
            return Ok(());
        }
        let (mut tries, mut moved) = (0, 0);
        while tries < TRIES {
            let Some(top) = self.find_below(name)? else { return Ok(()) };
            let before = moved;
            top.empty(&mut moved)?;
            tries += u32::from(moved == before);
            match rustix::fs::unlinkat(self, name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                // What was too deep is now at the top, or something came in.
                Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::NOTEMPTY.into())
    }

    /// False where it is a directory.
    fn remove_file(&self, name: &OsStr) -> io::Result<bool> {
        match rustix::fs::unlinkat(self, one(name)?, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            // Linux says the first, POSIX the second.
            Err(Errno::ISDIR | Errno::PERM) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes what it holds. Directories that are too deep to be emptied on the way are moved up
    /// to this one; `moved` counts them.
    fn empty(&self, moved: &mut u64) -> io::Result<()> {
        let mut levels: Vec<(Option<Directory>, OsString, Listing)> =
            vec![(None, OsString::new(), self.list()?)];
        loop {
            let depth = levels.len();
            let Some((level, _, listing)) = levels.last_mut() else { return Ok(()) };
            let Some(entry) = listing.next_entry()? else {
                let Some((_, name, _)) = levels.pop() else { return Ok(()) };
                if let Some((parent, ..)) = levels.last() {
                    match rustix::fs::unlinkat(
                        parent.as_ref().unwrap_or(self),
                        &name,
                        AtFlags::REMOVEDIR,
                    ) {
                        // The caller looks again.
                        Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                continue;
            };
            let directory = level.as_ref().unwrap_or(self);
            if directory.remove_file(&entry.name)? {
                continue;
            }
            if depth > MAX_DEPTH {
                directory.move_up(&entry.name, self, moved)?;
            } else if let Some(next) = directory.find_below(&entry.name)? {
                let listing = next.list()?;
                levels.push((Some(next), entry.name, listing));
            }
        }
    }

    /// Moves a directory to another one, under a name that is free there.
    fn move_up(&self, name: &OsStr, to: &Self, moved: &mut u64) -> io::Result<()> {
        for number in 0..NAMES {
            let aside = format!(".removing-{}-{}", std::process::id(), *moved + number);
            match rustix::fs::renameat(self, name, to, aside.as_str()) {
                Ok(()) => *moved += 1 + number,
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => continue,
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
            return Ok(());
        }
        // Names that somebody took on purpose are gone in the next round.
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Then;

    /// Deeper than paths can be long and than files may be open.
    #[test]
    fn trees_of_any_depth_are_removed_and_walked() {
        let place = tempfile::tempdir().unwrap();
        let root = Directory::open(place.path()).unwrap();
        let tree = root.make_below("tree".as_ref()).unwrap();
        let mut last = tree.make_below("d".as_ref()).unwrap();
        for _ in 0..1_000 {
            last.create("file".as_ref()).unwrap();
            last = last.make_below("d".as_ref()).unwrap();
        }
        let mut seen = 0;
        let is_whole = tree.walk(|_| {
            seen += 1;
            Ok(Then::Into)
        });
        assert!(!is_whole.unwrap() && seen == 2 * MAX_DEPTH + 1, "{seen}");
        root.remove_all("tree".as_ref()).unwrap();
        assert!(root.list().unwrap().next_entry().unwrap().is_none());
    }

    #[test]
    fn what_a_link_points_to_stays() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("tree/sub")).unwrap();
        std::fs::create_dir(place.path().join("outside")).unwrap();
        std::fs::write(place.path().join("outside/file"), "kept").unwrap();
        std::os::unix::fs::symlink("../../outside", place.path().join("tree/sub/link")).unwrap();
        std::os::unix::fs::symlink("outside", place.path().join("link")).unwrap();
        let root = Directory::open(place.path()).unwrap();
        root.remove_all("tree".as_ref()).unwrap();
        root.remove_all("link".as_ref()).unwrap();
        root.remove_all("nothing".as_ref()).unwrap();
        assert_eq!(std::fs::read_to_string(place.path().join("outside/file")).unwrap(), "kept");
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
