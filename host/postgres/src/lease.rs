//! The lease of a host: until when it may answer.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;

use crate::group::{Group, Term};

/// How long a host may answer after it has renewed its lease. As long after the renewal, by the
/// database's clock, another host may take its place.
pub const LEASE: Duration = Duration::from_secs(3);

/// Until when a host may answer. The host counts from the moment at which it asked the database to
/// renew the lease, and the database from a later one: the host stops first. Its clock goes on
/// while the machine sleeps.
#[derive(Debug)]
pub struct HostLease {
    /// Nanoseconds since the machine was started.
    until: AtomicU64,
    /// Since when it was held without a gap.
    since: AtomicU64,
    /// The token under which the host is the home of each group; 0: it is not.
    tokens: [AtomicI64; Group::COUNT],
    /// When it became that.
    begun: [AtomicU64; Group::COUNT],
    /// The database's time in nanoseconds since 1970, less the nanoseconds since the machine was
    /// started; `i64::MIN`: not known.
    ahead: AtomicI64,
    /// The latest time that was known, in nanoseconds since 1970.
    reached: AtomicI64,
    /// The database's timeline; 0: not known.
    timeline: watch::Sender<i64>,
    /// When it was found to be another one.
    changed: Mutex<Option<Instant>>,
}

/// `until` of a lease that has ended for good: a moment that has long passed.
const ENDED: u64 = 1;
/// How long a host stands still at most, in nanoseconds, because of what another one has written.
const LONGEST_STAND: i64 = 3_600 * 1_000_000_000;
/// By how much the database's clock must differ from what was expected to count as set.
const STEP: Duration = Duration::from_secs(1);
/// How long an answer may take whose time is used.
const SOON: Duration = Duration::from_millis(250);

impl Default for HostLease {
    fn default() -> Self {
        Self {
            until: AtomicU64::default(),
            since: AtomicU64::default(),
            tokens: Default::default(),
            begun: Default::default(),
            ahead: AtomicI64::new(i64::MIN),
            reached: AtomicI64::new(i64::MIN),
            timeline: watch::Sender::default(),
            changed: Mutex::default(),
        }
    }
}

/// Nanoseconds since the machine was started.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let nanoseconds = now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec);
    u64::try_from(nanoseconds).unwrap_or(0)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl HostLease {
    /// Whether the host may answer as the home of a group in this term.
    pub fn holds(&self, term: Term) -> bool {
        // `renew` sets the token first, so a lease that it renewed has its token.
        self.is_held() && self.is_home(term)
    }

    /// Whether the last heartbeat has found the host to be the home of a group in this term,
    /// however late that was.
    pub fn is_home(&self, term: Term) -> bool {
        self.tokens[term.group.number()].load(Ordering::Acquire) == term.token
    }

    /// Whether the lease has not ended.
    pub fn is_held(&self) -> bool {
        now() < self.until.load(Ordering::Acquire)
    }

    /// The database's time, in nanoseconds since 1970, which never falls: where the database's
    /// clock does, it stands still until that has caught up. `None`: no heartbeat has found it.
    pub(crate) fn database_time(&self) -> Option<i64> {
        let found = self.found()?;
        Some(found.max(self.reached.load(Ordering::Relaxed)))
    }

    fn found(&self) -> Option<i64> {
        let ahead = self.ahead.load(Ordering::Relaxed);
        (ahead != i64::MIN).then(|| ahead.saturating_add(i64::try_from(now()).unwrap_or(i64::MAX)))
    }

    /// Another host has written something at a time, in microseconds since 1970. What this one
    /// writes is not earlier. A time that is long ahead was wrong: it is not kept.
    pub(crate) fn reach(&self, microseconds: i64) {
        let time = microseconds.saturating_mul(1_000);
        let is_near = |found: i64| time.saturating_sub(found) < LONGEST_STAND;
        if self.found().is_none_or(is_near) {
            self.reached.fetch_max(time, Ordering::Relaxed);
        }
    }

    /// A question that was sent at a moment was answered with the database's time, in microseconds
    /// since 1970: it was about in the middle. Where that clock was set, the leases of all hosts
    /// may look as if they had ended: this one takes nobody's place until they had a term to renew
    /// them.
    pub(crate) fn found_time(&self, sent: u64, microseconds: i64) {
        let took = now().saturating_sub(sent);
        let middle = i64::try_from(sent + took / 2).unwrap_or(i64::MAX);
        let ahead = microseconds.saturating_mul(1_000).saturating_sub(middle);
        let mut is_set = false;
        if let Some(before) = self.found() {
            self.reached.fetch_max(before, Ordering::Relaxed);
            let moved = ahead.abs_diff(self.ahead.load(Ordering::Relaxed));
            is_set = moved > took + nanoseconds(STEP);
            if is_set {
                self.since.store(sent, Ordering::Release);
            }
        }
        if is_set || took <= nanoseconds(SOON) {
            self.ahead.store(ahead, Ordering::Relaxed);
        }
    }

    /// The database's timeline. A server that was asked on another one may never answer.
    pub(crate) fn timeline(&self) -> watch::Receiver<i64> {
        self.timeline.subscribe()
    }

    /// When the timeline was found to be another one.
    pub(crate) fn timeline_changed(&self) -> Option<Instant> {
        *self.changed.lock()
    }

    /// The database's timeline was found to be this one. Another server may have another clock, so
    /// what [`Self::found_time`] says of one that was set holds for it.
    pub(crate) fn found_timeline(&self, timeline: i64) {
        self.timeline.send_if_modified(|known| {
            let before = std::mem::replace(known, timeline);
            if before != 0 && before != timeline {
                self.since.store(now(), Ordering::Release);
                *self.changed.lock() = Some(Instant::now());
            }
            before != timeline
        });
    }

    /// The host is the home of a group from here on.
    pub(crate) fn begin(&self, term: Term) {
        let at = term.group.number();
        self.begun[at].store(now(), Ordering::Release);
        self.tokens[at].store(term.token, Ordering::Release);
    }

    /// The host is not the home of a group any more.
    pub(crate) fn end_term(&self, group: Group) {
        let at = group.number();
        // What was asked before says that it is.
        self.begun[at].store(now(), Ordering::Release);
        self.tokens[at].store(0, Ordering::Release);
    }

    /// Whether the lease was held for as long as it lasts. Only then does its host take another
    /// one's place: after an outage of the database all leases have ended, and whoever leads renews
    /// its own first.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_held() && now() >= self.since.load(Ordering::Acquire) + nanoseconds(LEASE)
    }

    /// The database has renewed the lease, and said in which terms the host is a home. It was asked
    /// at `sent`.
    pub(crate) fn renew(&self, sent: u64, terms: &[Term]) {
        for (group, token) in Group::all().zip(&self.tokens) {
            // It may not have known of one that began meanwhile.
            if self.begun[group.number()].load(Ordering::Acquire) < sent {
                let term = terms.iter().find(|term| term.group == group);
                token.store(term.map_or(0, |term| term.token), Ordering::Release);
            }
        }
        if sent >= self.until.load(Ordering::Acquire) {
            self.since.store(sent, Ordering::Release);
        }
        let until = sent + nanoseconds(LEASE);
        // A heartbeat may be answered after the end.
        let go_on = |known| (known != ENDED).then_some(until);
        let _ = self.until.fetch_update(Ordering::AcqRel, Ordering::Acquire, go_on);
    }

    /// The host answers nothing any more, and is not renewed.
    pub(crate) fn end(&self) {
        self.until.store(ENDED, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn whose_place_is_taken_is_not_said_by_a_clock_that_was_set() {
        let term = nanoseconds(LEASE);
        for set_to in [1_000_000_300, 999_999_700] {
            let lease = HostLease::default();
            lease.found_time(now(), 1_000_000_000_000_000);
            let first = now() - term - nanoseconds(STEP);
            lease.renew(first, &[]);
            lease.renew(first + term / 2, &[]);
            lease.found_time(now(), 1_000_000_000_500_000);
            assert!(lease.is_settled(), "half a second has gone by");
            lease.found_time(now(), set_to * 1_000_000);
            assert!(lease.is_held() && !lease.is_settled(), "{set_to}");
        }
    }

    #[test]
    fn a_lease_ends_by_itself_and_is_settled_after_a_whole_term_without_a_gap() {
        let lease = HostLease::default();
        assert!(!lease.is_held() && !lease.is_settled());
        let term = nanoseconds(LEASE);
        // It was asked for a second before the end of the term, twice.
        let first = now() - term - nanoseconds(Duration::from_secs(1));
        lease.renew(first, &[]);
        assert!(!lease.is_held(), "three seconds have gone by since it was asked for");
        let home = |token| Term { host: Uuid::nil(), token, group: Group::HOST };
        lease.renew(first + term / 2, &[home(7)]);
        assert!(lease.is_held() && lease.is_settled());
        assert!(lease.holds(home(7)) && !lease.holds(home(8)));
        // After a gap the term begins anew.
        lease.until.store(0, Ordering::Release);
        assert!(!lease.holds(home(7)));
        lease.renew(now(), &[]);
        assert!(lease.is_held() && !lease.is_settled());
        assert!(!lease.holds(home(7)), "another host is the home by now");
        // What was asked before the host became the home knows nothing of it.
        let asked = now();
        lease.begin(home(9));
        lease.renew(asked, &[]);
        assert!(lease.holds(home(9)));
        let asked = now();
        lease.end_term(Group::HOST);
        lease.renew(asked, &[home(9)]);
        assert!(!lease.holds(home(9)), "it was given away meanwhile");
        lease.end();
        lease.renew(now(), &[home(9)]);
        assert!(!lease.is_held(), "a heartbeat was answered after the end");
    }

    #[test]
    fn whose_place_is_taken_is_not_said_by_the_clock_of_another_server() {
        let lease = HostLease::default();
        let first = now() - nanoseconds(LEASE) - nanoseconds(STEP);
        lease.renew(first, &[]);
        lease.renew(first + nanoseconds(LEASE) / 2, &[]);
        lease.found_timeline(1);
        assert!(lease.is_settled() && lease.timeline_changed().is_none());
        lease.found_timeline(2);
        assert!(lease.is_held() && !lease.is_settled() && lease.timeline_changed().is_some());
    }
}
