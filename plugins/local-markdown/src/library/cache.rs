//! Records that were answered before, kept in memory, so that a query touches no file. A record
//! leaves with its index entry: when it is changed, forgotten or deleted by hand.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::index::DocId;
use crate::record::Shown;

/// The most memory of them, in bytes.
const BYTES: usize = 16 << 20;
/// So many places in the queue may belong to records that are gone, beside as many as there are
/// records.
const STALE: usize = 1_024;

#[derive(Debug)]
struct Kept {
    shown: Shown,
    bytes: usize,
    /// When its file was last seen in the state that is kept.
    seen: Instant,
    /// Which of the places in the queue is its own.
    ticket: u64,
    /// Whether it was answered since it was last about to go.
    was_used: bool,
}

/// The records by number. If there is no room, the one goes that came first and was not answered
/// lately.
#[derive(Debug)]
pub(super) struct Cache {
    of: Vec<Option<Kept>>,
    queue: VecDeque<(DocId, u64)>,
    count: usize,
    bytes: usize,
    most: usize,
    tickets: u64,
    /// The company whose records they are. Snippets contain its name.
    company: String,
}

impl Default for Cache {
    fn default() -> Self {
        let company = String::new();
        Self {
            of: Vec::new(),
            queue: VecDeque::new(),
            count: 0,
            bytes: 0,
            most: BYTES,
            tickets: 0,
            company,
        }
    }
}

impl Cache {
    /// Drops everything that was kept for another company.
    pub(super) fn enter(&mut self, company: &str) {
        if self.company != company {
            *self = Self { company: company.to_owned(), most: self.most, ..Self::default() };
        }
    }

    /// A record whose file was seen at most `within` before `now`.
    pub(super) fn fresh(&self, doc: DocId, now: Instant, within: Duration) -> bool {
        let kept = self.of.get(doc as usize).and_then(Option::as_ref);
        kept.is_some_and(|kept| now.saturating_duration_since(kept.seen) < within)
    }

    /// A record, if it is kept.
    pub(super) fn get(&mut self, doc: DocId) -> Option<&Shown> {
        let kept = self.of.get_mut(doc as usize)?.as_mut()?;
        kept.was_used = true;
        Some(&kept.shown)
    }

    /// The record's file is as it was.
    pub(super) fn saw(&mut self, doc: DocId, now: Instant) {
        if let Some(kept) = self.of.get_mut(doc as usize).and_then(Option::as_mut) {
            kept.seen = now;
        }
    }

    /// Keeps a record, and drops others if there is no room.
    pub(super) fn put(&mut self, doc: DocId, shown: Shown, now: Instant) {
        self.drop(doc);
        if self.of.len() <= doc as usize {
            self.of.resize_with(doc as usize + 1, || None);
        }
        let (bytes, ticket) = (shown.bytes(), self.tickets);
        self.tickets += 1;
        self.of[doc as usize] = Some(Kept { shown, bytes, seen: now, ticket, was_used: false });
        self.queue.push_back((doc, ticket));
        self.bytes += bytes;
        self.count += 1;
        // The last one stays although it may be too large alone: it is about to be answered.
        while self.bytes > self.most && self.count > 1 {
            let Some((other, ticket)) = self.queue.pop_front() else { break };
            match self
                .of
                .get_mut(other as usize)
                .and_then(Option::as_mut)
                .filter(|kept| kept.ticket == ticket)
            {
                Some(kept) if kept.was_used || other == doc => {
                    kept.was_used = false;
                    self.queue.push_back((other, ticket));
                }
                Some(_) => self.drop(other),
                None => {}
            }
        }
        if self.queue.len() > 2 * self.count + STALE {
            let of = &self.of;
            self.queue.retain(|(doc, ticket)| {
                of[*doc as usize].as_ref().is_some_and(|kept| kept.ticket == *ticket)
            });
        }
    }

    /// The record is changed or gone.
    pub(super) fn drop(&mut self, doc: DocId) {
        if let Some(kept) = self.of.get_mut(doc as usize).and_then(Option::take) {
            self.bytes -= kept.bytes;
            self.count -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use memhost_sdk::types::Snippet;

    use super::*;

    fn shown(text: &str) -> Shown {
        Shown::of(Snippet::new("id", text))
    }

    #[test]
    fn the_memory_is_bounded_and_what_is_used_stays() {
        let now = Instant::now();
        let mut cache = Cache { most: 10 * shown("text").bytes(), ..Cache::default() };
        for doc in 0..100 {
            cache.put(doc, shown("text"), now);
            assert!(cache.get(0).is_some(), "{doc}");
            assert!(cache.bytes <= cache.most);
        }
        assert_eq!(cache.count, 10);
        assert!(cache.get(99).is_some() && cache.get(50).is_none());
        cache.put(7, shown(&"long ".repeat(10_000)), now);
        assert!(cache.get(7).is_some());
        cache.put(8, shown("text"), now);
        assert!(cache.bytes <= cache.most && cache.get(8).is_some());
    }

    #[test]
    fn a_dropped_record_is_gone_and_leaves_no_place_behind() {
        let now = Instant::now();
        let mut cache = Cache::default();
        for _ in 0..10_000 {
            cache.put(3, shown("text"), now);
            cache.drop(3);
        }
        assert!(cache.get(3).is_none());
        assert_eq!((cache.bytes, cache.count), (0, 0));
        assert!(cache.queue.len() <= STALE + 1);
        cache.put(3, shown("text"), now);
        cache.enter("another company");
        assert!(cache.get(3).is_none());
    }

    #[test]
    fn freshness_is_counted_from_the_last_look_at_the_file() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut cache = Cache::default();
        cache.put(3, shown("text"), start);
        assert!(cache.fresh(3, start, second) && !cache.fresh(3, start + second, second));
        cache.saw(3, start + second);
        assert!(cache.fresh(3, start + second, second) && !cache.fresh(3, start, Duration::ZERO));
    }
}
