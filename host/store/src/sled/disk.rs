//! What stands between sled and the disk: the one function after which something is durable, and
//! the end of the store where sled cannot go on.
//!
//! sled 0.34 hands its pages to the system and waits for them with `sync_file_range`, which neither
//! writes the file's size and extents nor empties the disk's cache. [`Disk::flush`] does both with
//! `fdatasync` on a handle of its own: flushing works on the file, whoever wrote to it.
//!
//! sled overwrites segments of its log whose pages are in newer segments. It does so at the
//! earliest two whole segments later, which is 1 MiB. A newer segment that is not on disk by then
//! could be lost with the power, and the older one is overwritten. So there is a flush whenever
//! [`MOST_UNSYNCED`] were written.
//!
//! A long value is in a file of its own, and sled's log may be on disk before it. So the directory
//! of these files is marked as synchronous where the file system knows that (ext4, XFS, Btrfs):
//! then the file is on disk first.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, RwLock};
use rustix::fs::{FallocateFlags, IFlags, fallocate, ioctl_getflags, ioctl_setflags};
use sled::Db;

use super::pool;
use crate::reserve::Reserve;
use crate::{DiskSeam, DiskStep, OnFatal, StoreError};

/// Disk space behind the end of sled's file that is set aside for it, in bytes: what sled writes
/// next has room even if another process takes the rest of the disk.
const AHEAD: u64 = 8 << 20;
/// The unit of `st_blocks`, in bytes.
const BLOCK: u64 = 512;
/// Timestamps of a directory are this coarse at worst. A younger one may hide a later change.
const COARSE: Duration = Duration::from_millis(20);

/// Bytes that are handed to sled between two flushes, at most. sled writes a multiple of them,
/// because it rewrites whole pages: eight times as much may come.
const MOST_UNSYNCED: u64 = 128 << 10;
/// The most bytes that a batch of writes should have.
pub(super) const PIECE: usize = 64 << 10;

/// sled's files.
pub(super) struct Disk {
    /// Another database after a compaction.
    files: RwLock<Arc<Files>>,
    pub(super) reserve: Reserve,
    seam: Option<Arc<dyn DiskSeam>>,
    failure: OnceLock<StoreError>,
    on_fatal: Option<OnFatal>,
    opened: Instant,
    /// When the flush in progress began, in milliseconds since the opening and at least 1; 0
    /// without one.
    since: AtomicU64,
    /// Bytes that were handed to sled since the last flush began.
    unsynced: AtomicU64,
}

/// The database and its files.
pub(super) struct Files {
    db: Db,
    file: File,
    blobs: Mutex<Blobs>,
    /// Their directory.
    path: PathBuf,
}

/// The directory in which sled keeps values that are too long for its log, each in a file of its
/// own.
struct Blobs {
    path: PathBuf,
    directory: File,
    /// Those that are on disk.
    flushed: HashSet<OsString>,
    /// The directory's time when they were listed. `None` if it may hide a later change.
    listed: Option<Duration>,
}

/// Makes the directories of sled's files. Files of long values inherit that they are synchronous.
pub(super) fn prepare(store: &Path) -> io::Result<()> {
    let blobs = store.join("blobs");
    memhost_files::durable::create_directory(&blobs, 0o700)?;
    let opened = File::open(&blobs)?;
    let marked = ioctl_getflags(&opened)
        .and_then(|flags| ioctl_setflags(&opened, flags | IFlags::SYNC | IFlags::DIRSYNC));
    if let Err(error) = marked {
        tracing::debug!(
            %error, path = %blobs.display(), "the file system has no synchronous files",
        );
    }
    Ok(())
}

/// This process has the directory's lock. Where sled's own lock is still taken, this process has
/// just closed the same store: sled's worker threads release it a moment after the drop. So this
/// waits.
pub(super) fn open_db(config: &sled::Config) -> sled::Result<Db> {
    const TRIES: u32 = 500;
    for _ in 1..TRIES {
        match pool::open(config) {
            Err(sled::Error::Io(error)) if error.to_string().contains("could not acquire lock") => {
                std::thread::sleep(Duration::from_millis(10));
            }
            opened => return opened,
        }
    }
    pool::open(config)
}

impl Disk {
    /// Flushes everything that the opening of the database has written.
    pub(super) fn open(
        db: Db,
        store: &Path,
        reserve: Reserve,
        seam: Option<Arc<dyn DiskSeam>>,
        on_fatal: Option<OnFatal>,
    ) -> io::Result<Self> {
        let disk = Self {
            files: RwLock::new(Arc::new(Files::open(db, store)?)),
            reserve,
            seam,
            failure: OnceLock::new(),
            on_fatal,
            opened: Instant::now(),
            since: AtomicU64::new(0),
            unsynced: AtomicU64::new(0),
        };
        disk.set_space_aside();
        Ok(disk)
    }

    /// The database. It is flushed with [`Disk::flush`] only.
    pub(super) fn db(&self) -> Db {
        self.files.read().db.clone()
    }

    /// The directory of the database.
    pub(super) fn store(&self) -> PathBuf {
        self.files.read().path.clone()
    }

    /// Goes on with another database, which is flushed and has the same content. Answers the one
    /// before.
    pub(super) fn replace(&self, files: Files) -> Arc<Files> {
        std::mem::replace(&mut *self.files.write(), Arc::new(files))
    }

    /// Whether the store still takes calls.
    pub(super) fn alive(&self) -> Result<(), StoreError> {
        self.failure.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// Ends the store: sled may wait forever after a write that failed, so it is not called again.
    pub(super) fn fatal(&self, action: &'static str, error: &dyn std::fmt::Display) -> StoreError {
        let mut is_first = false;
        let failure = self.failure.get_or_init(|| {
            is_first = true;
            StoreError::Fatal { action, message: error.to_string() }
        });
        if is_first {
            tracing::error!(error = %failure, "the store takes no more calls");
            if let Some(on_fatal) = &self.on_fatal {
                on_fatal(failure);
            }
        }
        failure.clone()
    }

    /// The result of a write of sled.
    pub(super) fn wrote<T>(
        &self,
        action: &'static str,
        done: sled::Result<T>,
    ) -> Result<T, StoreError> {
        done.map_err(|error| self.fatal(action, &error))
    }

    /// Tells a test what happens next.
    pub(super) fn step(&self, step: DiskStep) -> Result<(), StoreError> {
        match &self.seam {
            None => Ok(()),
            Some(seam) => seam.step(step).map_err(|error| self.fatal("writing", &error)),
        }
    }

    /// Counts what is about to be written, and flushes first if it is too much. Answers whether it
    /// did.
    pub(super) fn count(&self, bytes: u64) -> Result<bool, StoreError> {
        // A value that is not in sled's log does not move it.
        let bytes = bytes.min(MOST_UNSYNCED / 2);
        let is_much = self.unsynced.fetch_add(bytes, Ordering::Relaxed) + bytes > MOST_UNSYNCED;
        if is_much {
            self.flush()?;
            self.unsynced.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(is_much)
    }

    /// Brings everything that was written before this call to the disk. Nobody is told that a write
    /// is durable before this has returned.
    pub(super) fn flush(&self) -> Result<(), StoreError> {
        self.alive()?;
        let now = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        // The first of several at the same time is watched.
        let is_watched = self
            .since
            .compare_exchange(0, now.max(1), Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
        self.unsynced.store(0, Ordering::Relaxed);
        let flushed = self.flush_and_sync();
        if is_watched {
            self.since.store(0, Ordering::Relaxed);
        }
        self.set_space_aside();
        flushed
    }

    fn flush_and_sync(&self) -> Result<(), StoreError> {
        self.step(DiskStep::Flush)?;
        let files = Arc::clone(&self.files.read());
        self.wrote("flushing", files.db.flush())?;
        self.step(DiskStep::Sync)?;
        // What the system could not write is not written by a second call, although that may answer
        // that it was.
        files.sync().map_err(|error| self.fatal("flushing", &error))
    }

    /// How long the flush in progress takes already, and which one it is.
    pub(super) fn waiting(&self) -> Option<(Duration, u64)> {
        let since = self.since.load(Ordering::Relaxed);
        let elapsed = self.opened.elapsed().saturating_sub(Duration::from_millis(since));
        (since > 0).then_some((elapsed, since))
    }

    /// Whether the disk itself answers. This waits for it.
    pub(super) fn probe(&self) -> io::Result<()> {
        let files = Arc::clone(&self.files.read());
        files.file.sync_data()
    }

    /// Keeps [`AHEAD`] bytes behind the file's end for sled. It is no error if the file system
    /// cannot: the room on the disk is checked before each write, too.
    fn set_space_aside(&self) {
        let files = Arc::clone(&self.files.read());
        let Ok(metadata) = files.file.metadata() else { return };
        // What the file has beyond its size. Asked for each time: sled cuts the file off now and
        // then, and the system takes back what was set aside.
        let aside = (metadata.blocks() * BLOCK).saturating_sub(metadata.len());
        if aside < AHEAD / 2 {
            let _ = fallocate(&files.file, FallocateFlags::KEEP_SIZE, metadata.len(), AHEAD);
        }
    }
}

impl Files {
    /// Brings everything that the opening of the database has written to the disk.
    pub(super) fn open(db: Db, store: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(store.join("db"))?;
        let path = store.join("blobs");
        let blobs =
            Blobs { directory: File::open(&path)?, path, flushed: HashSet::new(), listed: None };
        memhost_files::durable::sync_tree(store)?;
        Ok(Self { db, file, blobs: Mutex::new(blobs), path: store.to_owned() })
    }

    pub(super) fn db(&self) -> &Db {
        &self.db
    }

    /// Brings what sled has handed to the system to the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.blobs.lock().sync()?;
        self.file.sync_data()
    }
}

impl Blobs {
    fn sync(&mut self) -> io::Result<()> {
        let metadata = self.directory.metadata()?;
        let (seconds, nanos) = (metadata.mtime().max(0).cast_unsigned(), metadata.mtime_nsec());
        let time = Duration::new(seconds, u32::try_from(nanos).unwrap_or(0));
        if self.listed == Some(time) {
            return Ok(());
        }
        let (mut found, mut is_new) = (HashSet::new(), false);
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            if !self.flushed.contains(&name) {
                match File::open(self.path.join(&name)) {
                    // sled has removed it meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    opened => opened?.sync_all()?,
                }
                is_new = true;
            }
            found.insert(name);
        }
        if is_new {
            self.directory.sync_all()?;
        }
        self.flushed = found;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.listed = (now.saturating_sub(time) > COARSE).then_some(time);
        Ok(())
    }
}
