//! How much a binding's private directory may hold. WASI knows no such limit, so the calls that
//! make something grow are replaced by ones that ask first.
//!
//! Counting every file at every write would cost more than the write. Instead each write reduces a
//! remaining amount, and the directory is measured again only when that amount is used up;
//! overwritten and deleted files are found then. So the directory never holds more than its grant,
//! as long as only guests write there. Measuring walks the directory, on a blocking thread, and
//! follows no link. It is first done by the first write, or when somebody asks: the first question
//! after a restart does not wait for a walk over 100,000 files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::open_files::OpenFiles;
use memhost_files::{Directory, Kind, Then};

/// A guest that keeps trying at its limit does not make the host walk its directory more often than
/// this.
const MEASURE_AGAIN: Duration = Duration::from_secs(1);
/// Nor for more than this share of the time: walking a large directory holds a thread and a disk
/// that others need.
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
    /// Whether a write was refused since a call last asked. A guest often reports no more than `I/O
    /// error`.
    refused: AtomicBool,
}

struct Left {
    room: DirectoryUsage,
    /// What was taken since the present measurement began, which may not have seen it.
    taken: DirectoryUsage,
    /// Whether it was measured. Before that no room is known.
    is_known: bool,
    /// When it may be measured again.
    measure_after: Instant,
}

impl DirectoryQuota {
    /// The limits of a directory. It is measured when that is needed.
    pub fn new(path: &Path, max_bytes: u64, max_files: u64) -> Self {
        let max = DirectoryUsage { bytes: max_bytes, files: max_files };
        let (room, taken) = (DirectoryUsage::default(), DirectoryUsage::default());
        Self {
            path: path.to_owned(),
            max,
            left: Mutex::new(Left { room, taken, is_known: false, measure_after: Instant::now() }),
            measuring: tokio::sync::Mutex::default(),
            open_files: Arc::default(),
            refused: AtomicBool::new(false),
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The limits that a refused guest reached. `None` when asked a second time.
    pub(super) fn take_refusal(&self) -> Option<String> {
        let DirectoryUsage { bytes, files } = self.max;
        self.refused.swap(false, Ordering::Relaxed).then(|| {
            format!(
                "its directory is full: the limits are `directoryBytes` of {bytes} and \
                 `directoryFiles` of {files}, and \
                 {} levels of directories",
                memhost_files::MAX_DEPTH
            )
        })
    }

    /// What it holds at most. Measures only if that was never done.
    pub async fn usage(self: &Arc<Self>) -> DirectoryUsage {
        self.measure_if(|left| !left.is_known).await;
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
        left.room.bytes =
            self.max.bytes.saturating_sub(used_bytes).saturating_sub(left.taken.bytes);
        left.room.files =
            self.max.files.saturating_sub(used.files).saturating_sub(left.taken.files);
        left.is_known = true;
        left.measure_after = Instant::now() + MEASURE_AGAIN.max(started.elapsed() * MEASURE_SHARE);
    }

    /// Reserves an amount, if as much is left. Where it is not, the directory is measured first,
    /// unless that was done a moment ago.
    pub(super) async fn take(self: &Arc<Self>, wanted: DirectoryUsage) -> Result<(), ()> {
        self.renew(wanted).await;
        self.take_known(wanted)
    }

    /// Measures, if this amount is not left and it is time to.
    pub(super) async fn renew(self: &Arc<Self>, wanted: DirectoryUsage) {
        self.measure_if(|left| left.needs_measuring(wanted)).await;
    }

    async fn measure_if(self: &Arc<Self>, is_needed: impl Fn(&Left) -> bool) {
        if !is_needed(&self.left.lock()) {
            return;
        }
        let _measuring = self.measuring.lock().await;
        // Another call may have measured meanwhile.
        let is_needed = is_needed(&self.left.lock());
        if is_needed {
            let quota = Arc::clone(self);
            // Without it, what was known before holds.
            drop(memhost_executor::spawn_blocking(move || quota.measure()).await);
        }
    }

    /// Whether this amount is not left, and the directory may be measured again.
    pub(super) fn needs_measuring(&self, wanted: DirectoryUsage) -> bool {
        self.left.lock().needs_measuring(wanted)
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

    fn needs_measuring(&self, wanted: DirectoryUsage) -> bool {
        !self.fits(wanted) && Instant::now() >= self.measure_after
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
        assert_eq!(quota.usage().await, DirectoryUsage { bytes: 60, files: 2 });
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
    async fn nothing_is_measured_before_somebody_writes_or_asks() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, size: usize| {
            std::fs::write(directory.path().join(name), vec![0; size]).unwrap();
        };
        let quota = Arc::new(DirectoryQuota::new(directory.path(), 100, 10));
        file("before the first write", 60);
        quota.take(bytes(41)).await.unwrap_err();
        quota.take(bytes(40)).await.unwrap();
        let quota = Arc::new(DirectoryQuota::new(directory.path(), 100, 10));
        file("before the first question", 10);
        assert_eq!(quota.usage().await, DirectoryUsage { bytes: 70, files: 2 });
        file("measured once", 10);
        assert_eq!(quota.usage().await, DirectoryUsage { bytes: 70, files: 2 });
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
        assert_eq!(quota.usage().await, DirectoryUsage { bytes: 60, files: 0 });
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
