//! An open directory, and what can be reached from it without following a link.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::listing::{Kind, Listing};

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// An open directory. A name is one component of a path; a name that has become a link, or anything
/// else than what is asked for, is answered as missing or refused, never followed.
#[derive(Debug)]
pub struct Directory(OwnedFd);

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Directory {
    /// Opens a directory of the host's own. The operator chose the path and may have links in it.
    ///
    /// # Errors
    /// Where it is missing, is no directory or cannot be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::open(path, DIRECTORY, Mode::empty())?))
    }

    /// The directory of this name.
    ///
    /// # Errors
    /// Where it is missing, a link, no directory, or cannot be read.
    pub fn below(&self, name: &OsStr) -> io::Result<Self> {
        Ok(Self(rustix::fs::openat(
            &self.0,
            one(name)?,
            DIRECTORY | OFlags::NOFOLLOW,
            Mode::empty(),
        )?))
    }

    /// The same. `None` if it is missing, or has become something else meanwhile.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn find_below(&self, name: &OsStr) -> io::Result<Option<Self>> {
        match self.below(name) {
            Err(error) if is_gone(&error) => Ok(None),
            found => found.map(Some),
        }
    }

    /// The directory of this name, made with mode 0700 where it is missing. Something else of that
    /// name is removed.
    ///
    /// # Errors
    /// Where it cannot be made or read.
    pub fn make_below(&self, name: &OsStr) -> io::Result<Self> {
        for _ in 0..2 {
            match rustix::fs::mkdirat(&self.0, one(name)?, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            match self.find_below(name)? {
                Some(found) => return Ok(found),
                None => self.remove_all(name)?,
            }
        }
        Err(Errno::NOTDIR.into())
    }

    /// The directory at a relative path, made as [`Directory::make_below`] does.
    ///
    /// # Errors
    /// As there; also where the path leaves this directory.
    pub fn make_path(&self, path: &Path) -> io::Result<Self> {
        let mut last = Self(self.0.try_clone()?);
        for component in path.components() {
            let Component::Normal(name) = component else { return Err(Errno::INVAL.into()) };
            last = last.make_below(name)?;
        }
        Ok(last)
    }

    /// The directory at a relative path. `None` if it is missing.
    ///
    /// # Errors
    /// Where it cannot be read, or the path leaves this directory.
    pub fn find_path(&self, path: &Path) -> io::Result<Option<Self>> {
        let mut last = Self(self.0.try_clone()?);
        for component in path.components() {
            let Component::Normal(name) = component else { return Err(Errno::INVAL.into()) };
            let Some(next) = last.find_below(name)? else { return Ok(None) };
            last = next;
        }
        Ok(Some(last))
    }

    /// The regular file of this name, to read. `None` if there is none, or it is a link, a pipe or
    /// a device. Nothing here waits for another process.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn file(&self, name: &OsStr) -> io::Result<Option<File>> {
        // A device is not even opened: that alone may have an effect.
        if !matches!(self.stat(name)?, Some(found) if kind(&found) == Kind::File) {
            return Ok(None);
        }
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.0, one(name)?, flags, Mode::empty()) {
            Err(Errno::NOENT | Errno::LOOP | Errno::MLINK | Errno::NXIO) => Ok(None),
            Err(error) => Err(error.into()),
            // What has the name may have changed since it was looked at; what is open does not.
            Ok(opened) if kind(&rustix::fs::fstat(&opened)?) == Kind::File => {
                Ok(Some(opened.into()))
            }
            Ok(_) => Ok(None),
        }
    }

    /// A new, empty file of this name with mode 0600. Whatever had the name is removed.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        self.remove_all(name)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.0, one(name)?, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// What it holds, in the file system's order.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn list(&self) -> io::Result<Listing> {
        Listing::of(&self.0)
    }

    /// What the system says about a name. `None` if nothing has it.
    pub(crate) fn stat(&self, name: &OsStr) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(&self.0, one(name)?, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Refuses what is more than one name.
pub(crate) fn one(name: &OsStr) -> io::Result<&OsStr> {
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(first)), None) if first == name => Ok(name),
        _ => Err(Errno::INVAL.into()),
    }
}

pub(crate) fn kind(found: &Stat) -> Kind {
    rustix::fs::FileType::from_raw_mode(found.st_mode).into()
}

/// Whether an error means that a name is gone, or stands for something else now.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    let gone = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::MLINK];
    Errno::from_io_error(error).is_some_and(|error| gone.contains(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::io::Read;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Between a look at a name and its opening, somebody else can put a link there.
    #[test]
    fn a_name_that_becomes_a_link_at_any_moment_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let inside = place.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(place.path().join("key"), "of the host").unwrap();
        std::fs::write(inside.join("spare"), "of the guest").unwrap();
        std::os::unix::fs::symlink("../key", inside.join("link")).unwrap();
        let is_over = AtomicBool::new(false);
        let directory = Directory::open(&inside).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    for from in ["spare", "link"] {
                        // What has the name goes back to its own, so that both are there again.
                        std::fs::rename(inside.join(from), inside.join("name")).unwrap();
                        std::fs::rename(inside.join("name"), inside.join(from)).unwrap();
                    }
                }
            });
            let mut texts = BTreeSet::new();
            for _ in 0..100_000 {
                if let Some(mut file) = directory.file(OsStr::new("name")).unwrap() {
                    let mut text = String::new();
                    file.read_to_string(&mut text).unwrap();
                    texts.insert(text);
                }
            }
            // Before anything is asserted: the scope waits for its thread.
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(texts, BTreeSet::from(["of the guest".to_owned()]));
        });
    }
}
