//! A thread that looks at the disk a few times a second: how much room there is, and whether sled
//! still answers.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

use super::disk::Disk;
use super::log::Abandon;
use crate::StoreError;
use crate::error::failed;

const EVERY: Duration = Duration::from_millis(100);
/// After this a flush counts as late. If the disk answers then, sled gets the same time again.
const LATE: Duration = Duration::from_secs(10);

/// The thread. It ends when this is dropped.
pub(super) struct Watch {
    _alive: Sender<()>,
}

impl Watch {
    /// `abandon` answers callers that wait for a flush that never ends.
    pub(super) fn start(disk: &Arc<Disk>, abandon: Abandon) -> Result<Self, StoreError> {
        let (alive, ended) = mpsc::channel::<()>();
        let disk = Arc::downgrade(disk);
        let watch = move || {
            // The flush that was late when the disk answered, and how long it had taken then.
            let mut late: Option<(u64, Duration)> = None;
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                let Some(disk) = disk.upgrade() else { return };
                disk.reserve.measure();
                disk.reserve.restore_ballast();
                match (disk.waiting(), late) {
                    (Some((elapsed, flush)), Some((known, before))) if flush == known => {
                        if elapsed > before + LATE {
                            let why = "the disk answers, and the database does not";
                            abandon.all(&disk.fatal("flushing", &why));
                            return;
                        }
                    }
                    (Some((elapsed, flush)), _) if elapsed > LATE => {
                        tracing::warn!(
                            seconds = elapsed.as_secs(),
                            "the disk is slow: a flush has not ended"
                        );
                        // A disk that hangs holds this thread, too, and is no reason to end.
                        late = disk
                            .probe()
                            .is_ok()
                            .then(|| (flush, disk.waiting().map_or(elapsed, |(now, _)| now)));
                    }
                    _ => late = None,
                }
            }
        };
        std::thread::Builder::new()
            .name("memhost-disk".to_owned())
            .spawn(watch)
            .map_err(failed("starting the thread that watches the disk"))?;
        Ok(Self { _alive: alive })
    }
}
