//! How far the host is with each file of the plugins directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::plugins::files::Fingerprint;

/// The state of a file.
pub(super) struct SeenFile {
    pub(super) fingerprint: Fingerprint,
    pub(super) stage: Stage,
}

pub(super) enum Stage {
    /// It may be incomplete: it was first seen like this at this moment.
    Settling(Instant),
    Admitting {
        _task: AbortOnDrop,
    },
    /// It was admitted or refused.
    Done,
}

/// A task that ends where nobody needs its result any more.
pub(super) struct AbortOnDrop(pub(super) AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Counts what begins and what ends.
#[derive(Default)]
pub(crate) struct Progress {
    /// Whether each takes long, and so waits only for others that take long.
    running: Mutex<BTreeMap<(PathBuf, u64), bool>>,
    number: AtomicU64,
    changed: Notify,
    /// Whether everything that was there at the start has been admitted or refused.
    is_ready: AtomicBool,
}

impl Progress {
    /// The admission of a file begins. It ends when the answer is dropped.
    pub(crate) fn begin(self: &Arc<Self>, path: &Path) -> InProgress {
        let entry = (path.to_owned(), self.number.fetch_add(1, Ordering::Relaxed));
        self.running.lock().insert(entry.clone(), false);
        InProgress { progress: Arc::clone(self), entry }
    }

    /// The files that are being admitted.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> =
            self.running.lock().keys().map(|(path, _)| path.clone()).collect();
        files.dedup();
        files
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.running.lock().is_empty()
    }

    /// Resolves when nothing is being admitted.
    pub(crate) async fn idle(&self) {
        self.until(Self::is_idle).await;
    }

    /// Whether all that is being admitted takes long, or nothing is.
    pub(crate) fn has_only_slow(&self) -> bool {
        self.running.lock().values().all(|is_slow| *is_slow)
    }

    /// Resolves when nothing is being admitted but what takes long.
    pub(crate) async fn wait_for_fast(&self) {
        self.until(Self::has_only_slow).await;
    }

    async fn until(&self, is_so: fn(&Self) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Listens before it looks, so that no change is missed between the two.
            changed.as_mut().enable();
            if is_so(self) {
                return;
            }
            changed.await;
        }
    }

    pub(crate) fn set_ready(&self) {
        self.is_ready.store(true, Ordering::Release);
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire)
    }
}

/// An admission that runs.
pub(crate) struct InProgress {
    progress: Arc<Progress>,
    entry: (PathBuf, u64),
}

impl InProgress {
    /// It takes long: nothing waits for it from here on.
    pub(crate) fn set_slow(&self) {
        self.progress.running.lock().insert(self.entry.clone(), true);
        self.progress.changed.notify_waiters();
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.progress.running.lock().remove(&self.entry);
        self.progress.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_waits_for_what_takes_long_but_those_that_wait_for_all() {
        let progress = Arc::new(Progress::default());
        assert!(progress.is_idle() && progress.has_only_slow());
        let (slow, quick) = (progress.begin(Path::new("a")), progress.begin(Path::new("b")));
        assert!(!progress.is_idle() && !progress.has_only_slow());
        slow.set_slow();
        assert!(!progress.has_only_slow(), "one is quick");
        let waiting = {
            let progress = Arc::clone(&progress);
            tokio::spawn(async move { progress.wait_for_fast().await })
        };
        drop(quick);
        waiting.await.unwrap();
        assert!(!progress.is_idle() && progress.has_only_slow());
        drop(slow);
        progress.idle().await;
        progress.wait_for_fast().await;
    }

    #[test]
    fn a_file_that_is_admitted_twice_is_listed_once_until_both_end() {
        let progress = Arc::new(Progress::default());
        let (first, second) = (progress.begin(Path::new("a")), progress.begin(Path::new("a")));
        assert_eq!(progress.files(), [PathBuf::from("a")]);
        drop(first);
        assert_eq!(progress.files(), [PathBuf::from("a")]);
        drop(second);
        assert!(progress.files().is_empty());
        assert!(!progress.is_ready());
        progress.set_ready();
        assert!(progress.is_ready());
    }
}
