//! What was removed and is still in the store's files, which keep it until they are compacted. A
//! mark says since when there is something. It is written in one step with what removes text.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::RwLock;

use crate::{Change, Store, StoreError, Table, TableWrite, decode, encode};

/// The key of the mark.
const KEY: &[u8] = b"forgotten";
/// When a compaction that failed is tried again.
const AGAIN: SignedDuration = SignedDuration::from_mins(10);
/// After its start, a host that has something to compact waits for so long at most.
const AT_THE_START: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
struct State {
    /// Since when something is removed and not compacted.
    since: Option<Timestamp>,
    /// When a compaction begins.
    due: Option<Timestamp>,
    is_running: bool,
}

/// What was removed and is still in the store's files.
///
/// Operations of all companies mark. The lock is taken exclusively only for the first removal after
/// a compaction, and by the compaction: a later removal raises `last` while it has the lock shared,
/// so the end of a compaction, which has it exclusively, sees every removal before it.
#[derive(Debug)]
pub struct CompactionMark {
    after: Duration,
    state: RwLock<State>,
    /// When something was removed last, in microseconds.
    last: AtomicI64,
}

impl CompactionMark {
    /// Reads the mark. What a host before has left is compacted soon after the start. Otherwise
    /// `after` is the time from the first removal to the compaction.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub async fn open(
        store: &dyn Store,
        now: Timestamp,
        after: Duration,
    ) -> Result<Self, StoreError> {
        let stored = store.get(Table::Host, KEY).await?;
        let since: Option<Timestamp> = stored.map(|stored| decode("mark", &stored)).transpose()?;
        let due = since.and_then(|_| at(now, AT_THE_START.min(after)));
        let last = AtomicI64::new(since.map_or(i64::MIN, Timestamp::as_microsecond));
        Ok(Self { after, state: RwLock::new(State { since, due, is_running: false }), last })
    }

    /// Notes that something is about to be removed, or was. Answers the row that must be written in
    /// one step with it.
    ///
    /// # Errors
    /// Where the row cannot be encoded.
    pub fn mark(&self, now: Timestamp) -> Result<Option<TableWrite>, StoreError> {
        let note = || self.last.fetch_max(now.as_microsecond(), Ordering::SeqCst);
        {
            let state = self.state.read();
            if state.since.is_some() {
                note();
                return Ok(None);
            }
        }
        let mut state = self.state.write();
        note();
        // Another operation may have been first, between the two locks.
        if state.since.is_some() {
            return Ok(None);
        }
        // Where the row is not written after all, a compaction too many does no harm.
        (state.since, state.due) = (Some(now), at(now, self.after));
        Ok(Some(TableWrite::new(Table::Host, KEY.to_vec(), Some(encode("mark", &now)?))))
    }

    /// Begins a compaction if it is time for one. Answers when it began.
    pub fn begin(&self, now: Timestamp) -> Option<Timestamp> {
        let mut state = self.state.write();
        let is_due = !state.is_running && state.due.is_some_and(|due| due <= now);
        state.is_running |= is_due;
        is_due.then_some(now)
    }

    /// Ends it. Answers the change of the mark, where it was done: what was removed since it began
    /// may be in the files.
    ///
    /// # Errors
    /// Where the mark cannot be encoded.
    pub fn end(
        &self,
        began: Timestamp,
        now: Timestamp,
        is_done: bool,
    ) -> Result<Option<Change>, StoreError> {
        let mut state = self.state.write();
        state.is_running = false;
        if !is_done {
            state.due = now.checked_add(AGAIN).ok();
            return Ok(None);
        }
        let last = self.last.load(Ordering::SeqCst);
        let is_since = last >= began.as_microsecond();
        state.since = is_since.then(|| Timestamp::from_microsecond(last).unwrap_or(now));
        state.due = state.since.and_then(|since| at(since, self.after));
        let new = state.since.map(|since| encode("mark", &since)).transpose()?;
        Ok(Some(Change::always(Table::Host, KEY.to_vec(), new)))
    }

    /// How long to wait for the next compaction.
    pub fn wait(&self, now: Timestamp) -> Option<Duration> {
        let state = self.state.read();
        let due = state.due.filter(|_| !state.is_running)?;
        Some(Duration::try_from(due.duration_since(now)).unwrap_or_default())
    }
}

fn at(now: Timestamp, wait: Duration) -> Option<Timestamp> {
    now.checked_add(SignedDuration::try_from(wait).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_removed_during_a_compaction_is_compacted_again() {
        let second = |second: i64| Timestamp::from_second(second).unwrap();
        let mark = CompactionMark {
            after: Duration::from_secs(100),
            state: RwLock::default(),
            last: AtomicI64::new(i64::MIN),
        };
        assert_eq!(mark.begin(second(1_000)), None, "nothing was removed");
        assert!(mark.mark(second(1_000)).unwrap().is_some());
        assert!(mark.mark(second(1_050)).unwrap().is_none(), "one mark is enough");
        assert_eq!(mark.begin(second(1_099)), None);
        assert_eq!(mark.begin(second(1_100)), Some(second(1_100)));
        assert_eq!(mark.begin(second(1_100)), None, "one at a time");
        assert!(mark.mark(second(1_101)).unwrap().is_none());
        let written = mark.end(second(1_100), second(1_102), true).unwrap().unwrap();
        let new: Timestamp = decode("mark", &written.new.unwrap()).unwrap();
        assert_eq!(new, second(1_101));
        assert_eq!(mark.begin(second(1_201)), Some(second(1_201)));
        assert!(mark.end(second(1_201), second(1_202), false).unwrap().is_none());
        assert_eq!(mark.begin(second(1_300)), None, "a failed one is tried again later");
        assert_eq!(mark.begin(second(1_802)), Some(second(1_802)));
        let written = mark.end(second(1_802), second(1_803), true).unwrap().unwrap();
        assert_eq!(written.new, None, "nothing was removed since it began");
        assert!(mark.mark(second(2_000)).unwrap().is_some(), "the mark was removed");
    }
}
