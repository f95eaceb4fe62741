//! What is in a directory, one page after the other.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

use rustix::fs::FileType;

/// How much of a directory is read at once, in bytes. A name has at most 255.
pub const PAGE_BYTES: usize = 8 << 10;

/// The kind of entry behind a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A named pipe, a socket or a device.
    Special,
    /// The file system does not say.
    Unknown,
}

impl From<FileType> for Kind {
    fn from(found: FileType) -> Self {
        match found {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            FileType::Unknown => Self::Unknown,
            _ => Self::Special,
        }
    }
}

/// A name in a directory.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The name, without a slash, and neither `.` nor `..`.
    pub name: OsString,
    /// Its kind when the page was read.
    pub kind: Kind,
}

/// The entries of a directory. It holds one page of them at a time, whatever the directory holds.
pub struct Listing {
    pages: Pages,
    page: VecDeque<Entry>,
    has_ended: bool,
}

impl Listing {
    /// Lists a directory from its beginning. The file is opened anew: its position is its own.
    ///
    /// # Errors
    /// Where it is no directory or cannot be read.
    pub fn of(directory: impl AsFd) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let own = rustix::fs::openat(directory, ".", flags, Mode::empty())?;
        Ok(Self { pages: Pages::new(own)?, page: VecDeque::new(), has_ended: false })
    }

    /// The next entry. `None` at the end. Every few hundred entries it reads a page.
    ///
    /// # Errors
    /// Where the directory cannot be read any further.
    pub fn next_entry(&mut self) -> io::Result<Option<Entry>> {
        while self.page.is_empty() && !self.has_ended {
            self.has_ended = !self.pages.read(&mut self.page)?;
        }
        Ok(self.page.pop_front())
    }
}

fn entry(name: &std::ffi::CStr, kind: FileType) -> Option<Entry> {
    let name = name.to_bytes();
    let is_own = name == b"." || name == b"..";
    (!is_own).then(|| Entry { name: OsString::from_vec(name.to_vec()), kind: kind.into() })
}

/// Reads with the position of the open file and a buffer that lives for one page.
#[cfg(target_os = "linux")]
struct Pages(File);

#[cfg(target_os = "linux")]
impl Pages {
    fn new(directory: OwnedFd) -> io::Result<Self> {
        Ok(Self(File::from(directory)))
    }

    /// Adds a page; false at the end.
    fn read(&mut self, page: &mut VecDeque<Entry>) -> io::Result<bool> {
        let mut buffer = [std::mem::MaybeUninit::uninit(); PAGE_BYTES];
        let mut raw = rustix::fs::RawDir::new(&self.0, &mut buffer);
        loop {
            match raw.next() {
                None => return Ok(false),
                Some(found) => {
                    let found = found?;
                    page.extend(entry(found.file_name(), found.file_type()));
                }
            }
            if raw.is_buffer_empty() {
                return Ok(true);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
struct Pages(rustix::fs::Dir);

#[cfg(not(target_os = "linux"))]
impl Pages {
    fn new(directory: OwnedFd) -> io::Result<Self> {
        Ok(Self(rustix::fs::Dir::new(directory)?))
    }

    fn read(&mut self, page: &mut VecDeque<Entry>) -> io::Result<bool> {
        const ENTRIES: usize = 256;
        for found in self.0.by_ref().take(ENTRIES) {
            let found = found?;
            page.extend(entry(found.file_name(), found.file_type()));
        }
        Ok(!page.is_empty())
    }
}
