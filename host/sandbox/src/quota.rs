//! How much a binding's private directory may hold. WASI knows no such limit, so the calls that make something grow are
//! replaced by ones that ask first.
//!
//! Counting every file at every write would cost more than the write. Instead each write reduces a remaining amount, and
//! the directory is measured again only when that amount is used up; overwritten and deleted files are found then. So
//! the directory never holds more than its grant, as long as only guests write there.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A guest that keeps trying at its limit does not make the host walk its directory more often than this.
const MEASURE_AGAIN: Duration = Duration::from_secs(1);
/// Nor for more than this share of the time: walking a large directory holds a thread that others wait for.
const MEASURE_SHARE: u32 = 20;

/// What a directory holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DirectoryUsage {
    /// Apparent sizes of all files together.
    pub bytes: u64,
    /// Files, directories and links, without the directory itself.
    pub files: u64,
}

/// A directory and what it may hold.
pub struct DirectoryQuota {
    path: PathBuf,
    max: DirectoryUsage,
    left: Mutex<Left>,
    /// Whether a write was refused since a call last asked. A guest often reports no more than `I/O error`.
    refused: AtomicBool,
}

struct Left {
    room: DirectoryUsage,
    /// When it may be measured again.
    measure_after: Instant,
}

impl DirectoryQuota {
    /// Measures the directory: call it where blocking is allowed.
    pub fn new(path: &Path, max_bytes: u64, max_files: u64) -> Self {
        let max = DirectoryUsage { bytes: max_bytes, files: max_files };
        let left = Left { room: DirectoryUsage::default(), measure_after: Instant::now() };
        let quota = Self { path: path.to_owned(), max, left: Mutex::new(left), refused: AtomicBool::new(false) };
        quota.measure(&mut quota.left.lock());
        quota
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The limits that a refused guest reached; none when asked a second time.
    pub(super) fn take_refusal(&self) -> Option<String> {
        let DirectoryUsage { bytes, files } = self.max;
        self.refused.swap(false, Ordering::Relaxed).then(|| {
            format!("its directory is full: the limits are `directoryBytes` of {bytes} and `directoryFiles` of {files}")
        })
    }

    /// What it holds at most, as far as is known without measuring.
    pub fn usage(&self) -> DirectoryUsage {
        let room = self.left.lock().room;
        DirectoryUsage {
            bytes: self.max.bytes.saturating_sub(room.bytes),
            files: self.max.files.saturating_sub(room.files),
        }
    }

    fn measure(&self, left: &mut Left) {
        let started = Instant::now();
        let used = measure(&self.path);
        left.room.bytes = self.max.bytes.saturating_sub(used.bytes);
        left.room.files = self.max.files.saturating_sub(used.files);
        left.measure_after = Instant::now() + MEASURE_AGAIN.max(started.elapsed() * MEASURE_SHARE);
    }

    /// Reserves an amount, if as much is left.
    pub(super) fn take(&self, wanted: DirectoryUsage) -> Result<(), ()> {
        let mut left = self.left.lock();
        let fits = |room: &DirectoryUsage| wanted.bytes <= room.bytes && wanted.files <= room.files;
        if !fits(&left.room) && Instant::now() >= left.measure_after {
            self.measure(&mut left);
        }
        if !fits(&left.room) {
            self.refused.store(true, Ordering::Relaxed);
            return Err(());
        }
        left.room.bytes -= wanted.bytes;
        left.room.files -= wanted.files;
        Ok(())
    }
}

/// Links are counted and never followed. What cannot be read does not count: guests' files belong to the host's user.
fn measure(directory: &Path) -> DirectoryUsage {
    let mut used = DirectoryUsage::default();
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            used.files += 1;
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                pending.push(entry.path());
            } else {
                used.bytes += metadata.len();
            }
        }
    }
    used
}

pub(super) fn bytes(bytes: u64) -> DirectoryUsage {
    DirectoryUsage { bytes, files: 0 }
}

pub(super) const ONE_FILE: DirectoryUsage = DirectoryUsage { bytes: 0, files: 1 };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_and_found_again() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("sub")).unwrap();
        let file = directory.path().join("sub/file");
        std::fs::write(&file, [0; 60]).unwrap();
        let quota = DirectoryQuota::new(directory.path(), 100, 3);
        assert_eq!(quota.usage(), DirectoryUsage { bytes: 60, files: 2 });
        quota.take(bytes(40)).unwrap();
        quota.take(bytes(1)).unwrap_err();
        quota.take(ONE_FILE).unwrap();
        quota.take(ONE_FILE).unwrap_err();
        std::fs::remove_file(file).unwrap();
        // It was measured a moment ago, and is not measured again at once.
        quota.take(bytes(1)).unwrap_err();
        quota.left.lock().measure_after = Instant::now();
        quota.take(bytes(100)).unwrap();
    }
}
