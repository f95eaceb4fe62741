//! The file of a transcript. Only a regular file that is named by its whole path is read, no link
//! is followed, and of a long one only the end.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Its length, in bytes; 0 if it cannot be read.
pub(super) fn length(path: &Path) -> u64 {
    open(path).and_then(|file| file.metadata().ok()).map_or(0, |found| found.len())
}

/// Opens a regular file. No link is followed, and no pipe or device is waited for.
fn open(path: &Path) -> Option<File> {
    if !path.is_absolute() {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    file.metadata().ok()?.is_file().then_some(file)
}

/// The last lines of a file, and whether these are all.
pub(super) fn tail(path: &Path, max: u64) -> Option<(String, bool)> {
    let mut file = open(path)?;
    let length = file.metadata().ok()?.len();
    let start = length.saturating_sub(max);
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    // A part begins in the middle of a line.
    Some(if start == 0 {
        (text, true)
    } else {
        (text.split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap_or_default(), false)
    })
}
