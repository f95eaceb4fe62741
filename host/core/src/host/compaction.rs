//! Compaction of the store after something was forgotten. The store's files keep what was removed
//! until they are compacted, so a mark says since when there is something. It is written in one
//! step with what removes text.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use crate::Service;
use crate::error::ServiceError;
use memhost_store::{self as store, Change, Compacted, Store, StoreError, Table, TableWrite};

/// The key of the mark.
const FORGOTTEN: &[u8] = b"forgotten";
/// When a compaction that failed is tried again.
const AGAIN: SignedDuration = SignedDuration::from_mins(10);
/// After its start, a host that has something to compact waits for so long at most.
const AT_THE_START: Duration = Duration::from_secs(5);

#[derive(Default)]
struct State {
    /// Since when something is removed and not compacted.
    since: Option<Timestamp>,
    /// When something was removed last.
    last: Option<Timestamp>,
    /// When a compaction begins.
    due: Option<Timestamp>,
    is_running: bool,
}

/// What was removed and is still in the store's files.
pub(crate) struct Forgotten {
    after: Duration,
    state: Mutex<State>,
}

impl Forgotten {
    /// Reads the mark. What a host before has left is compacted soon after the start.
    pub(crate) async fn open(
        store: &dyn Store,
        now: Timestamp,
        after: Duration,
    ) -> Result<Self, StoreError> {
        let stored = store.get(Table::Host, FORGOTTEN).await?;
        let since: Option<Timestamp> =
            stored.map(|stored| store::decode("mark", &stored)).transpose()?;
        let due = since.and_then(|_| at(now, AT_THE_START.min(after)));
        Ok(Self { after, state: Mutex::new(State { since, last: since, due, is_running: false }) })
    }

    /// Notes that something is about to be removed, or was. Answers the row that must be written in
    /// one step with it.
    pub(crate) fn mark(&self, now: Timestamp) -> Result<Option<TableWrite>, StoreError> {
        let mut state = self.state.lock();
        state.last = Some(now);
        if state.since.is_some() {
            return Ok(None);
        }
        // Where the row is not written after all, a compaction too many does no harm.
        (state.since, state.due) = (Some(now), at(now, self.after));
        Ok(Some(TableWrite::new(
            Table::Host,
            FORGOTTEN.to_vec(),
            Some(store::encode("mark", &now)?),
        )))
    }

    /// Begins a compaction if it is time for one. Answers when it began.
    fn begin(&self, now: Timestamp) -> Option<Timestamp> {
        let mut state = self.state.lock();
        let is_due = !state.is_running && state.due.is_some_and(|due| due <= now);
        state.is_running |= is_due;
        is_due.then_some(now)
    }

    /// Ends it. Answers what the mark is now: what was removed since it began may be in the files.
    fn end(&self, began: Timestamp, now: Timestamp, is_done: bool) -> Option<Timestamp> {
        let mut state = self.state.lock();
        state.is_running = false;
        if is_done {
            state.since = state.last.filter(|last| *last >= began);
            state.due = state.since.and_then(|since| at(since, self.after));
        } else {
            state.due = now.checked_add(AGAIN).ok();
        }
        state.since
    }

    /// How long to wait for the next compaction.
    pub(crate) fn wait(&self, now: Timestamp) -> Option<Duration> {
        let state = self.state.lock();
        let due = state.due.filter(|_| !state.is_running)?;
        Some(Duration::try_from(due.duration_since(now)).unwrap_or_default())
    }
}

fn at(now: Timestamp, wait: Duration) -> Option<Timestamp> {
    now.checked_add(SignedDuration::try_from(wait).ok()?).ok()
}

impl Service {
    /// Notes durably that something is about to be removed, or was, outside of an operation.
    pub(crate) async fn note_forgetting(&self) -> Result<(), StoreError> {
        if let Some(change) = self.forgetting()? {
            store::write(&*self.store, &[change]).await?;
        }
        Ok(())
    }

    /// The same as [`Forgotten::mark`], for changes that are written without an operation.
    pub(crate) fn forgetting(&self) -> Result<Option<Change>, StoreError> {
        Ok(self.recorder.forgotten.mark(self.clock.now())?.map(Change::from))
    }

    /// Compacts the store in a task of its own, if it is time.
    pub(crate) fn compact_if_due(self: &Arc<Self>) {
        let Some(began) = self.recorder.forgotten.begin(self.clock.now()) else { return };
        let service = Arc::clone(self);
        memhost_ports::spawn(async move {
            let compacted = service.compact(began).await;
            match compacted {
                Ok(Some(Compacted { bytes_before, bytes_after })) => {
                    let (before, after) = (bytes_before >> 10, bytes_after >> 10);
                    tracing::info!(
                        before,
                        after,
                        "what was forgotten is no longer in the store's files; sizes in KiB"
                    );
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(%error, "what was forgotten is still in the store's files")
                }
            }
            service.wake.notify_one();
        });
    }

    async fn compact(
        self: &Arc<Self>,
        began: Timestamp,
    ) -> Result<Option<Compacted>, ServiceError> {
        let weak = Arc::downgrade(self);
        let stop = move || {
            weak.upgrade().is_none_or(|service| service.is_shutting_down.load(Ordering::Relaxed))
        };
        let compacted = self.store.compact(Box::new(stop)).await;
        let is_done = matches!(compacted, Ok(Some(_)));
        let mark = self.recorder.forgotten.end(began, self.clock.now(), is_done);
        if is_done {
            let new = mark.map(|since| store::encode("mark", &since)).transpose()?;
            store::write(&*self.store, &[Change::always(Table::Host, FORGOTTEN.to_vec(), new)])
                .await?;
        }
        Ok(compacted?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_removed_during_a_compaction_is_compacted_again() {
        let second = |second: i64| Timestamp::from_second(second).unwrap();
        let forgotten = Forgotten { after: Duration::from_secs(100), state: Mutex::default() };
        assert_eq!(forgotten.begin(second(1_000)), None, "nothing was removed");
        assert!(forgotten.mark(second(1_000)).unwrap().is_some());
        assert!(forgotten.mark(second(1_050)).unwrap().is_none(), "one mark is enough");
        assert_eq!(forgotten.begin(second(1_099)), None);
        assert_eq!(forgotten.begin(second(1_100)), Some(second(1_100)));
        assert_eq!(forgotten.begin(second(1_100)), None, "one at a time");
        assert!(forgotten.mark(second(1_101)).unwrap().is_none());
        assert_eq!(forgotten.end(second(1_100), second(1_102), true), Some(second(1_101)));
        assert_eq!(forgotten.begin(second(1_201)), Some(second(1_201)));
        assert_eq!(forgotten.end(second(1_201), second(1_202), false), Some(second(1_101)));
        assert_eq!(forgotten.begin(second(1_300)), None, "a failed one is tried again later");
        assert_eq!(forgotten.begin(second(1_802)), Some(second(1_802)));
        assert_eq!(forgotten.end(second(1_802), second(1_803), true), None);
        assert!(forgotten.mark(second(2_000)).unwrap().is_some(), "the mark was removed");
    }
}
