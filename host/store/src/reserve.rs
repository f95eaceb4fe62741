//! The reserve on the disk. The database does not survive a write that fails, so the store stops
//! before the disk is full: how much of the reserve is left decides what may still be written.
//!
//! Every write asks the system, which takes about a microsecond: other processes fill disks, too. A
//! file that takes a part of the reserve is removed when others have filled the disk, so that
//! something can still be deleted.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, fallocate, statvfs};

use crate::{DiskLevel, DiskSeam, DiskState, StoreError};

/// The file that holds a part of the reserve.
const BALLAST: &str = "reserve";

/// The purpose of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// New data.
    New,
    /// A write that ends, changes or removes something existing.
    Present,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ballast {
    Missing,
    Present,
    /// The file system cannot set space aside.
    Impossible,
}

/// The reserve on the disk of a data directory.
pub(crate) struct Reserve {
    data_dir: PathBuf,
    seam: Option<Arc<dyn DiskSeam>>,
    /// Bytes; 0 turns everything here off.
    reserve: u64,
    level: AtomicU8,
    free: AtomicU64,
    ballast: Mutex<Ballast>,
}

impl Reserve {
    pub(crate) fn new(data_dir: &Path, reserve: u64, seam: Option<Arc<dyn DiskSeam>>) -> Self {
        let ballast =
            if data_dir.join(BALLAST).exists() { Ballast::Present } else { Ballast::Missing };
        let made = Self {
            data_dir: data_dir.to_owned(),
            seam,
            reserve,
            level: AtomicU8::new(0),
            free: AtomicU64::new(u64::MAX),
            ballast: Mutex::new(ballast),
        };
        made.measure();
        made
    }

    /// Makes room for the opening of the database, which writes a little, if others have filled the
    /// disk.
    pub(crate) fn make_room_to_open(&self) {
        if self.reserve > 0 && self.measure() < self.floor() {
            self.release();
        }
    }

    /// Below this, in bytes, reads are refused, too.
    fn spent(&self) -> u64 {
        self.reserve / 4
    }

    /// Below this, in bytes, nothing is written at all.
    fn floor(&self) -> u64 {
        self.reserve / 16
    }

    pub(crate) fn state(&self) -> DiskState {
        let free = self.free.load(Ordering::Relaxed);
        DiskState {
            level: self.level(),
            free_bytes: (free != u64::MAX).then_some(free),
            reserve_bytes: self.reserve,
        }
    }

    fn level(&self) -> DiskLevel {
        match self.level.load(Ordering::Relaxed) {
            0 => DiskLevel::Plenty,
            1 => DiskLevel::Low,
            _ => DiskLevel::Spent,
        }
    }

    /// Asks the system, and answers the bytes that are free.
    pub(crate) fn measure(&self) -> u64 {
        let asked =
            || statvfs(&self.data_dir).map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize));
        let seen = self.seam.as_ref().and_then(|seam| seam.free());
        // Where the system does not say, nothing is refused: the write itself will fail.
        let free = seen.unwrap_or_else(|| asked().unwrap_or(u64::MAX));
        self.free.store(free, Ordering::Relaxed);
        let before = self.level();
        // A little more must be free to go back, so that the level does not change with every
        // write.
        let below = |limit: u64, level: DiskLevel| {
            free < limit + if before >= level { limit / 8 } else { 0 }
        };
        let level = match self.reserve {
            0 => DiskLevel::Plenty,
            _ if below(self.spent(), DiskLevel::Spent) => DiskLevel::Spent,
            _ if below(self.reserve, DiskLevel::Low) => DiskLevel::Low,
            _ => DiskLevel::Plenty,
        };
        if level != before {
            self.level.store(level as u8, Ordering::Relaxed);
            let (free_mib, reserve_mib) = (free >> 20, self.reserve >> 20);
            match level {
                DiskLevel::Plenty => {
                    tracing::info!(
                        free_mib,
                        "there is room on the disk again: writes are accepted"
                    );
                }
                DiskLevel::Low => tracing::warn!(
                    free_mib,
                    reserve_mib,
                    "the disk is almost full: new data is refused"
                ),
                DiskLevel::Spent => {
                    tracing::error!(
                        free_mib,
                        reserve_mib,
                        "the disk is full: all but deletions is refused"
                    );
                }
            }
        }
        free
    }

    /// Keeps the ballast where there is room for it. Called now and then, where blocking is
    /// allowed.
    pub(crate) fn restore_ballast(&self) {
        let mut ballast = self.ballast.lock();
        // With a test's own numbers there is no real file.
        if *ballast != Ballast::Missing
            || self.reserve == 0
            || self.seam.as_ref().is_some_and(|seam| seam.free().is_some())
        {
            return;
        }
        if self.measure() < self.reserve.saturating_mul(2) {
            return;
        }
        let path = self.data_dir.join(BALLAST);
        let mut options = fs::File::options();
        options.write(true).create(true).truncate(false);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let made = options.open(&path).map_err(|error| error.to_string()).and_then(|file| {
            fallocate(&file, FallocateFlags::empty(), 0, self.reserve / 8)
                .map_err(|error| error.to_string())
        });
        match made {
            Ok(()) => *ballast = Ballast::Present,
            Err(error) => {
                *ballast = Ballast::Impossible;
                tracing::debug!(error, "no part of the disk could be set aside");
                let _ = fs::remove_file(&path);
            }
        }
    }

    /// Answers whether there is more room now.
    fn release(&self) -> bool {
        let mut ballast = self.ballast.lock();
        if *ballast != Ballast::Present {
            return false;
        }
        *ballast = Ballast::Missing;
        tracing::warn!(
            "the disk was filled: the part of it that was set aside is used for deletions"
        );
        fs::remove_file(self.data_dir.join(BALLAST)).is_ok()
    }

    /// Whether this may be written. `bytes` is about what it takes.
    ///
    /// # Errors
    /// Where there is too little room. Nothing was written then.
    pub(crate) fn check(&self, need: Need, bytes: u64) -> Result<(), StoreError> {
        if self.reserve == 0 {
            return Ok(());
        }
        let least = self.floor().saturating_add(bytes.saturating_mul(2));
        let mut free = self.measure();
        if free < least && need == Need::Present && self.release() {
            free = self.measure();
        }
        let refused = free < least || (need == Need::New && self.level() != DiskLevel::Plenty);
        if refused { Err(StoreError::DiskFull { free, reserve: self.reserve }) } else { Ok(()) }
    }
}
