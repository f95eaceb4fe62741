//! How much a binding's private directory may hold. WASI knows no such limit, so the calls that make something grow are
//! replaced by ones that ask first.
//!
//! Counting every file at every write would cost more than the write. Instead each write reduces a remaining amount, and
//! the directory is measured again only when that amount is used up; overwritten and deleted files are found then. So
//! the directory never holds more than its grant, as long as only guests write there. Measuring walks the directory, on
//! a blocking thread, and follows no link.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::open_files::OpenFiles;
use memhost_files::{Directory, Kind, Then};

/// A guest that keeps trying at its limit does not make the host walk its directory more often than this.
const MEASURE_AGAIN: Duration = Duration::from_secs(1);
/// Nor for more than this share of the time: walking a large directory holds a thread and a disk that others need.
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
    /// Held by the one who measures.
    measuring: tokio::sync::Mutex<()>,
    open_files: Arc<OpenFiles>,
    /// Whether a write was refused since a call last asked. A guest often reports no more than `I/O error`.
    refused: AtomicBool,
}

struct Left {
    room: DirectoryUsage,
    /// What was taken since the present measurement began, which may not have seen it.
    taken: DirectoryUsage,
    /// When it may be measured again.
    measure_after: Instant,
}

impl DirectoryQuota {
    /// Measures the directory: call it where blocking is allowed.
    pub fn new(path: &Path, max_bytes: u64, max_files: u64) -> Self {
        let max = DirectoryUsage { bytes: max_bytes, files: max_files };
        let (room, taken) = (DirectoryUsage::default(), DirectoryUsage::default());
        let quota = Self {
            path: path.to_owned(),
            max,
            left: Mutex::new(Left { room, taken, measure_after: Instant::now() }),
            measuring: tokio::sync::Mutex::default(),
            open_files: Arc::default(),
            refused: AtomicBool::new(false),
        };
        quota.measure();
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
            format!(
                "its directory is full: the limits are `directoryBytes` of {bytes} and `directoryFiles` of {files}, and \
                 {} levels of directories",
                memhost_files::MAX_DEPTH
            )
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

    /// What the binding's guests have open.
    pub(super) fn open_files(&self) -> &Arc<OpenFiles> {
        &self.open_files
    }

    fn measure(&self) {
        let started = Instant::now();
        self.left.lock().taken = DirectoryUsage::default();
        let used = measure(&self.path).unwrap_or(FULL);
        let used_bytes = used.bytes.saturating_add(self.open_files.removed_bytes());
        let mut left = self.left.lock();
        left.room.bytes = self.max.bytes.saturating_sub(used_bytes).saturating_sub(left.taken.bytes);
        left.room.files = self.max.files.saturating_sub(used.files).saturating_sub(left.taken.files);
        left.measure_after = Instant::now() + MEASURE_AGAIN.max(started.elapsed() * MEASURE_SHARE);
    }

    /// Reserves an amount, if as much is left. Where it is not, the directory is measured first, unless that was done a
    /// moment ago.
    pub(super) async fn take(self: &Arc<Self>, wanted: DirectoryUsage) -> Result<(), ()> {
        self.renew(wanted).await;
        self.take_known(wanted)
    }

    /// Measures, if this amount is not left and it is time to.
    pub(super) async fn renew(self: &Arc<Self>, wanted: DirectoryUsage) {
        if !self.needs_measuring(wanted) {
            return;
        }
        let _measuring = self.measuring.lock().await;
        // Another call may have measured meanwhile.
        if self.needs_measuring(wanted) {
            let quota = Arc::clone(self);
            // Without it, what was known before holds.
            drop(tokio::task::spawn_blocking(move || quota.measure()).await);
        }
    }

    /// Whether this amount is not left, and the directory may be measured again.
    pub(super) fn needs_measuring(&self, wanted: DirectoryUsage) -> bool {
        let left = self.left.lock();
        !left.fits(wanted) && Instant::now() >= left.measure_after
    }

    /// Reserves an amount, if as much is known to be left.
    pub(super) fn take_known(&self, wanted: DirectoryUsage) -> Result<(), ()> {
        let mut left = self.left.lock();
        if !left.fits(wanted) {
            self.refused.store(true, Ordering::Relaxed);
            return Err(());
        }
        left.room.bytes -= wanted.bytes;
        left.room.files -= wanted.files;
        left.taken.bytes = left.taken.bytes.saturating_add(wanted.bytes);
        left.taken.files = left.taken.files.saturating_add(wanted.files);
        Ok(())
    }
}

impl Left {
    fn fits(&self, wanted: DirectoryUsage) -> bool {
        wanted.bytes <= self.room.bytes && wanted.files <= self.room.files
    }
}

/// What a directory counts as that cannot be measured.
const FULL: DirectoryUsage = DirectoryUsage { bytes: u64::MAX, files: u64::MAX };

/// Links are counted and never followed. A directory that is nested too deep is full.
fn measure(directory: &Path) -> std::io::Result<DirectoryUsage> {
    let mut used = DirectoryUsage::default();
    let is_whole = Directory::open(directory)?.walk(|one| {
        used.files += 1;
        if one.kind != Kind::Directory {
            used.bytes = used.bytes.saturating_add(one.bytes());
        }
        Ok(Then::Into)
    })?;
    Ok(if is_whole { used } else { FULL })
}

pub(super) fn bytes(bytes: u64) -> DirectoryUsage {
    DirectoryUsage { bytes, files: 0 }
}

pub(super) const ONE_FILE: DirectoryUsage = DirectoryUsage { bytes: 0, files: 1 };

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn room_is_taken_and_found_again() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("sub")).unwrap();
        let file = directory.path().join("sub/file");
        std::fs::write(&file, [0; 60]).unwrap();
        let quota = Arc::new(DirectoryQuota::new(directory.path(), 100, 3));
        assert_eq!(quota.usage(), DirectoryUsage { bytes: 60, files: 2 });
        quota.take(bytes(40)).await.unwrap();
        quota.take(bytes(1)).await.unwrap_err();
        quota.take(ONE_FILE).await.unwrap();
        quota.take(ONE_FILE).await.unwrap_err();
        std::fs::remove_file(file).unwrap();
        // It was measured a moment ago, and is not measured again at once.
        quota.take(bytes(1)).await.unwrap_err();
        quota.left.lock().measure_after = Instant::now();
        quota.take(bytes(100)).await.unwrap();
    }

    #[tokio::test]
    async fn removed_files_count_while_they_are_open_and_trees_that_are_too_deep_are_full() {
        let directory = tempfile::tempdir().unwrap();
        let quota = Arc::new(DirectoryQuota::new(directory.path(), 100, 1_000));
        let file = Arc::new(tempfile::tempfile_in(directory.path()).unwrap());
        file.set_len(60).unwrap();
        let opened: Arc<dyn std::any::Any + Send + Sync> = Arc::clone(&file) as _;
        quota.open_files().add(&opened);
        quota.left.lock().measure_after = Instant::now();
        quota.take(bytes(101)).await.unwrap_err();
        assert_eq!(quota.usage(), DirectoryUsage { bytes: 60, files: 0 });
        drop((file, opened));
        let mut last = Directory::open(directory.path()).unwrap();
        for _ in 0..memhost_files::MAX_DEPTH + 2 {
            last = last.make_below("d".as_ref()).unwrap();
        }
        quota.left.lock().measure_after = Instant::now();
        quota.take(bytes(101)).await.unwrap_err();
        quota.take(bytes(1)).await.unwrap_err();
    }
}
