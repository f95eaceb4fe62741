//! What guests have open on the host. A process may have only so many files open, and a file that
//! is open takes its place on the disk also after it was removed.

use std::any::Any;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// What is written, cut off or freed on the guest's own thread, in bytes: it takes less than a
/// millisecond. More is handed over to a blocking thread, which costs ten times what a small access
/// does.
pub(crate) const FAST_BYTES: u64 = 1 << 20;
/// Files and listings that the guests of one binding may have open at once.
pub(super) const MAX_OPEN_FILES: usize = 256;
/// All guests together have at most a quarter of the files that this process may open, and one
/// binding this part of them.
const SHARE_OF_ONE: usize = 8;
/// What is assumed where the system has no such limit.
const UNLIMITED: u64 = 1 << 20;

/// Open files of all guests of this process, because the system's limit is the process's.
static OF_ALL: AtomicUsize = AtomicUsize::new(0);

/// Something that lives as long as a file or a listing is open.
pub(super) type Opened = Arc<dyn Any + Send + Sync>;

/// The open files of one binding, or of one instance without a directory that it may write.
#[derive(Default)]
pub(super) struct OpenFiles(Mutex<Vec<Weak<dyn Any + Send + Sync>>>);

impl OpenFiles {
    /// Whether one more may be opened.
    pub(super) fn has_room(&self) -> bool {
        let mut open = self.0.lock();
        let of_all = most_of_all();
        let most = MAX_OPEN_FILES.min(of_all / SHARE_OF_ONE);
        let is_full = |open: &[_]| open.len() >= most || OF_ALL.load(Ordering::Relaxed) >= of_all;
        if is_full(&open) {
            forget_closed(&mut open);
        }
        !is_full(&open)
    }

    /// Counts what was opened, until it is dropped.
    pub(super) fn add(&self, opened: &Opened) {
        self.0.lock().push(Arc::downgrade(opened));
        OF_ALL.fetch_add(1, Ordering::Relaxed);
    }

    /// Forgets what was closed; answers how much is still open.
    pub(super) fn count(&self) -> usize {
        let mut open = self.0.lock();
        forget_closed(&mut open);
        open.len()
    }

    /// The sizes of the files that were removed while they were open, in bytes.
    pub(super) fn removed_bytes(&self) -> u64 {
        let open: Vec<_> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        let files = open.iter().filter_map(|open| open.downcast_ref::<File>());
        let removed =
            files.filter_map(|file| file.metadata().ok()).filter(|found| found.nlink() == 0);
        removed.map(|found| found.len()).fold(0, u64::saturating_add)
    }
}

impl Drop for OpenFiles {
    fn drop(&mut self) {
        OF_ALL.fetch_sub(self.0.get_mut().len(), Ordering::Relaxed);
    }
}

fn forget_closed(open: &mut Vec<Weak<dyn Any + Send + Sync>>) {
    let before = open.len();
    open.retain(|open| open.strong_count() > 0);
    OF_ALL.fetch_sub(before - open.len(), Ordering::Relaxed);
}

fn most_of_all() -> usize {
    let limit =
        rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(UNLIMITED);
    usize::try_from(limit / 4).unwrap_or(usize::MAX)
}

/// Whether closing a file frees so much of the disk that it takes long: nothing names it any more.
pub(super) fn is_slow_to_close(file: &Arc<File>) -> bool {
    Arc::strong_count(file) == 1
        && file.metadata().is_ok_and(|found| found.nlink() == 0 && found.len() > FAST_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_closed_makes_room_and_what_is_removed_counts() {
        let files = OpenFiles::default();
        let file = Arc::new(tempfile::tempfile().unwrap());
        file.set_len(1 << 20).unwrap();
        let others: Vec<Arc<()>> = (0..MAX_OPEN_FILES).map(|_| Arc::new(())).collect();
        let opened: Opened = Arc::clone(&file) as _;
        files.add(&opened);
        assert_eq!((files.count(), files.removed_bytes()), (1, 1 << 20));
        let mut added = 1;
        for other in &others {
            if !files.has_room() {
                break;
            }
            let other: Opened = Arc::clone(other) as _;
            files.add(&other);
            added += 1;
        }
        assert!(added <= MAX_OPEN_FILES && !files.has_room(), "{added}");
        drop((file, opened));
        assert!(files.has_room());
        assert_eq!((files.count(), files.removed_bytes()), (added - 1, 0));
    }
}
