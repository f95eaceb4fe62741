//! The feed of events for followers: operations and jobs once they are on disk, budgets whose state
//! changes, and plugins that are added or removed.
//!
//! Some events do not wait for the disk: a budget that a call changes, a read with relaxed audit,
//! an operation that was interrupted, and a write whose intent could not be stored.
//!
//! From the first follower on the last notices are kept in memory, so that a follower that lost its
//! connection continues where it was. A follower that was away for longer, or during a restart,
//! gets a reset and the operations that ended meanwhile, from the log.

mod notice;
mod place;
mod ring;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

pub use self::notice::{HostEvent, Notice};
pub use self::place::Place;
use self::place::Places;
use self::ring::{Found, Ring};
use memhost_ports::Clock;
use memhost_store::{self as store, Table, TableWrite};
use memhost_types::{BudgetView, CompanyId, Job, Operation};

/// Followers that one token, or one session of the explorer, may have at a time.
pub const MAX_FOLLOWERS_OF_CALLER: usize = 32;

/// The feed of a host.
pub struct Feed {
    run: u64,
    places: Places,
    /// Followers by the key of their caller.
    followers: Mutex<HashMap<String, usize>>,
    clock: Arc<dyn Clock>,
    ring: Ring,
    /// Whether there was a follower. Nobody comes back for what was published before the first one,
    /// so that is not kept.
    is_followed: AtomicBool,
    /// Whether a follower waits for the next notice. Who publishes takes the lock in `wake` only
    /// then, and once for all that wait.
    is_awaited: AtomicBool,
    wake: Notify,
    is_closed: AtomicBool,
}

impl Feed {
    /// An empty feed of a new run of the host.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let run = u64::try_from(clock.random() & u128::from(u64::MAX)).unwrap_or(1);
        let places = Places::new([clock.random(), clock.random()]);
        Self {
            run,
            places,
            followers: Mutex::default(),
            clock,
            ring: Ring::default(),
            is_followed: AtomicBool::new(false),
            is_awaited: AtomicBool::new(false),
            wake: Notify::new(),
            is_closed: AtomicBool::new(false),
        }
    }

    fn id(&self, place: Place) -> String {
        // Random: a counter would tell how many events others were sent.
        let salt = u64::try_from(self.clock.random() & u128::from(u64::MAX)).unwrap_or(0);
        self.places.id(place, salt)
    }

    /// The place of an id that a follower came back with.
    pub fn place(&self, id: &str) -> Option<Place> {
        self.places.parse(id)
    }

    /// Tells the followers of a company what happened; with `None` those of the whole host.
    pub fn publish(&self, company: Option<&CompanyId>, happened: HostEvent) {
        if !self.is_followed.load(Ordering::SeqCst) {
            return;
        }
        let at = self.clock.now();
        self.ring.push(|number| {
            let place = Place { run: self.run, number, at };
            Notice { place, company_id: company.cloned(), happened }
        });
        self.wake();
    }

    fn wake(&self) {
        // A follower says that it waits and then looks once more. So either it sees the notice, or
        // this sees that it waits.
        if self.is_awaited.swap(false, Ordering::SeqCst) {
            self.wake.notify_waiters();
        }
    }

    /// Removes what is kept of an erased company.
    pub fn forget(&self, company: &CompanyId) {
        self.ring.forget(company);
    }

    /// Publishes an operation that has ended.
    pub fn operation(&self, operation: &Arc<Operation>) {
        if !self.is_followed.load(Ordering::SeqCst) {
            return;
        }
        let told = match operation.log.is_empty() && operation.payload.is_none() {
            true => Arc::clone(operation),
            false => Arc::new(Operation {
                log: Vec::new(),
                payload: None,
                ..Operation::clone(operation)
            }),
        };
        self.publish(Some(&operation.company_id), HostEvent::Operation(told));
    }

    /// Publishes a job that is new or has changed.
    pub fn job(&self, job: Job) {
        let company = job.company_id.clone();
        self.publish(Some(&company), HostEvent::Job(Box::new(job)));
    }

    /// Publishes the jobs among the table writes of an operation.
    pub fn jobs(&self, written: &[TableWrite]) {
        for write in written.iter().filter(|write| write.table == Table::Jobs) {
            match write.new.as_deref().map(|value| store::decode::<Job>("job", value)) {
                Some(Ok(job)) => self.job(job),
                Some(Err(error)) => {
                    tracing::error!(%error, "a job that was written cannot be published");
                }
                None => {}
            }
        }
    }

    /// Publishes a budget whose state has changed.
    pub fn budget(&self, view: BudgetView) {
        let company = view.budget.company_id.clone();
        self.publish(Some(&company), HostEvent::Budget(Box::new(view)));
    }

    /// Ends all followers, also new ones.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// A place among the followers of a caller. None: the caller has as many as one may have.
    pub fn seat(self: &Arc<Self>, caller: &str) -> Option<Seat> {
        let mut followers = self.followers.lock();
        let count = followers.entry(caller.to_owned()).or_default();
        if *count >= MAX_FOLLOWERS_OF_CALLER {
            return None;
        }
        *count += 1;
        Some(Seat { feed: Arc::clone(self), caller: caller.to_owned() })
    }

    /// A follower of what happens after an earlier notice, or from now on. Answers false with it
    /// where notices in between are no longer kept; it begins with a reset then.
    pub fn follower(
        self: &Arc<Self>,
        seat: Seat,
        company: Option<&CompanyId>,
        after: Option<Place>,
    ) -> (Follower, bool) {
        self.is_followed.store(true, Ordering::SeqCst);
        let (first, end) = (self.ring.first(), self.ring.end());
        let mut follower = Follower {
            feed: Arc::clone(self),
            company: company.cloned(),
            number: end,
            caught_up: VecDeque::new(),
            _seat: seat,
        };
        let Some(after) = after else { return (follower, true) };
        let is_kept = after.run == self.run && after.number < end && after.number + 1 >= first;
        match is_kept {
            true => follower.number = after.number + 1,
            false => follower.caught_up.push_back(Arc::new(self.reset(company, end))),
        }
        (follower, is_kept)
    }

    fn reset(&self, company: Option<&CompanyId>, before: u64) -> Notice {
        // Without an earlier notice: a follower that continues from here gets a reset again.
        let (run, number) = before.checked_sub(1).map_or((0, 0), |number| (self.run, number));
        let place = Place { run, number, at: self.clock.now() };
        Notice { place, company_id: company.cloned(), happened: HostEvent::Reset }
    }
}

/// A place among the followers of a caller. Dropping it gives the place back.
pub struct Seat {
    feed: Arc<Feed>,
    caller: String,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut followers = self.feed.followers.lock();
        if let Some(count) = followers.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                followers.remove(&self.caller);
            }
        }
    }
}

/// A follower of the feed.
pub struct Follower {
    feed: Arc<Feed>,
    company: Option<CompanyId>,
    number: u64,
    caught_up: VecDeque<Arc<Notice>>,
    _seat: Seat,
}

impl Follower {
    /// Adds notices that come before the next event.
    pub fn catch_up(&mut self, notices: Vec<Arc<Notice>>) {
        self.caught_up.extend(notices);
    }

    /// The id of a notice, to go on from after it: opaque, and different each time.
    pub fn id(&self, notice: &Notice) -> String {
        self.feed.id(notice.place)
    }

    /// Waits for the next event. `None`: the host stops.
    pub async fn next(&mut self) -> Option<Arc<Notice>> {
        let feed = Arc::clone(&self.feed);
        loop {
            if let Some(notice) = self.caught_up.pop_front() {
                return Some(notice);
            }
            if feed.is_closed.load(Ordering::SeqCst) {
                return None;
            }
            if let Some(notice) = self.published() {
                return Some(notice);
            }
            let woken = feed.wake.notified();
            tokio::pin!(woken);
            woken.as_mut().enable();
            feed.is_awaited.store(true, Ordering::SeqCst);
            // What was published before the line above has woken nobody.
            if feed.is_closed.load(Ordering::SeqCst) {
                return None;
            }
            if let Some(notice) = self.published() {
                return Some(notice);
            }
            woken.await;
        }
    }

    /// The next notice that is published and is for this follower.
    fn published(&mut self) -> Option<Arc<Notice>> {
        let ring = &self.feed.ring;
        loop {
            match ring.read(self.number) {
                Found::NotYet => return None,
                Found::Gone => {
                    // A follower that reads too slowly misses events.
                    self.number = ring.first();
                    let company = self.company.as_ref();
                    return Some(Arc::new(self.feed.reset(company, self.number)));
                }
                Found::Notice(notice) => {
                    self.number += 1;
                    if self.company.is_none() || notice.company_id == self.company {
                        return Some(notice);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::ring::{KEPT, MAX_KEPT_BYTES, weight};
    use super::*;
    use memhost_ports::SystemClock;
    use memhost_types::{OperationId, PluginChange, PluginOutcome};

    /// Publishes resets, also before there is a follower.
    fn told(feed: &Feed, count: u64) {
        feed.is_followed.store(true, Ordering::SeqCst);
        (0..count).for_each(|_| feed.publish(None, HostEvent::Reset));
    }

    #[test]
    fn ids_of_neighbours_do_not_count() {
        let feed = Feed::new(Arc::new(SystemClock));
        let salt = |id: String| u64::from_str_radix(id.split('-').nth(1).unwrap(), 16).unwrap();
        let place = Place::in_the_log(Timestamp::UNIX_EPOCH);
        let salts: Vec<u64> = (0..9).map(|_| salt(feed.id(place))).collect();
        assert!(salts.windows(2).all(|two| two[0].abs_diff(two[1]) > 9), "{salts:?}");
    }

    #[test]
    fn notices_are_kept_from_the_first_follower_on() {
        let feed = Arc::new(Feed::new(Arc::new(SystemClock)));
        feed.publish(None, HostEvent::Reset);
        assert_eq!(feed.ring.end(), 0);
        let follower = feed.follower(feed.seat("ada").unwrap(), None, None);
        drop(follower);
        feed.publish(None, HostEvent::Reset);
        assert_eq!(feed.ring.end(), 1, "it may come back");
    }

    #[test]
    fn only_the_last_notices_are_kept_and_their_numbers_go_on() {
        let feed = Feed::new(Arc::new(SystemClock));
        told(&feed, KEPT + 10);
        let (kept, _) = feed.ring.kept();
        assert_eq!((feed.ring.first(), feed.ring.end()), (10, KEPT + 10));
        assert_eq!(
            kept.iter().map(|(number, _)| *number).collect::<Vec<_>>(),
            (10..KEPT + 10).collect::<Vec<_>>()
        );
        let place = kept[0].1.place;
        assert_eq!((place.run, place.number), (feed.run, 10));
        assert_eq!(feed.place(&feed.id(place)).unwrap().number, 10);
    }

    #[test]
    fn notices_of_an_erased_company_go_and_the_places_of_the_others_stay() {
        let feed = Feed::new(Arc::new(SystemClock));
        let (acme, other): (CompanyId, CompanyId) =
            ("acme".parse().unwrap(), "other".parse().unwrap());
        told(&feed, 0);
        let change = || {
            HostEvent::Plugin(PluginChange { path: "a.wasm".into(), outcome: PluginOutcome::Gone })
        };
        [&acme, &other, &acme]
            .into_iter()
            .for_each(|company| feed.publish(Some(company), change()));
        feed.forget(&acme);
        let (notices, bytes) = feed.ring.kept();
        let kept =
            notices.iter().map(|(_, notice)| (notice.company_id.clone(), notice.happened.clone()));
        let gone = (None, HostEvent::Reset);
        assert_eq!(kept.collect::<Vec<_>>(), [gone.clone(), (Some(other), change()), gone]);
        let weights = notices.iter().map(|(_, notice)| weight(&notice.happened));
        assert_eq!(bytes, weights.sum::<usize>());
    }

    #[test]
    fn whoever_was_told_of_a_gap_before_anything_else_is_told_so_again() {
        let feed = Feed::new(Arc::new(SystemClock));
        let run = |before| feed.reset(None, before).place.run;
        assert_eq!((run(0), run(1)), (0, feed.run), "the first notice has the number 0");
    }

    #[test]
    fn the_memory_that_notices_keep_is_bounded() {
        let feed = Feed::new(Arc::new(SystemClock));
        told(&feed, 0);
        let error = "x".repeat(1 << 20);
        for _ in 0..20 {
            let job: Job = serde_json::from_value(serde_json::json!({
                "id": uuid::Uuid::nil(), "companyId": "acme", "bindingId": uuid::Uuid::nil(),
                "bindingKey": "b",
                "providerKey": "p", "operationId": OperationId::new(1, 1, 1), "providerJobId": "j",
                "scope": {"companyId": "acme"}, "status": "failed", "runner": "host", "attempts": 1,
                "failures": 1,
                "submittedAt": "2026-01-01T00:00:00Z", "error": error,
            }))
            .unwrap();
            feed.job(job);
        }
        let (kept, bytes) = feed.ring.kept();
        assert!(kept.len() < 8 && bytes <= MAX_KEPT_BYTES, "{} with {bytes} bytes", kept.len());
        assert_eq!(feed.ring.end(), 20, "their numbers go on");
    }

    #[test]
    fn a_caller_has_no_more_followers_than_it_may_and_gives_their_places_back() {
        let feed = Arc::new(Feed::new(Arc::new(SystemClock)));
        let seats: Vec<Seat> =
            (0..MAX_FOLLOWERS_OF_CALLER).map(|_| feed.seat("ada").unwrap()).collect();
        assert!(feed.seat("ada").is_none() && feed.seat("bob").is_some());
        drop(seats);
        assert!(feed.seat("ada").is_some());
        assert!(feed.followers.lock().is_empty());
    }

    #[tokio::test]
    async fn whoever_is_too_slow_is_told_so_and_goes_on() {
        let feed = Arc::new(Feed::new(Arc::new(SystemClock)));
        let (mut follower, _) = feed.follower(feed.seat("ada").unwrap(), None, None);
        told(&feed, KEPT + 3);
        let first = follower.next().await.unwrap();
        assert_eq!(first.happened.kind(), "reset");
        assert_eq!(first.place.number, 2, "whoever comes back with it goes on behind the gap");
        for number in 3..KEPT + 3 {
            assert_eq!(follower.next().await.unwrap().place.number, number);
        }
        feed.close();
        assert!(follower.next().await.is_none());
        told(&feed, 1);
        assert!(follower.next().await.is_none(), "what is closed stays so");
    }

    fn company(name: &str) -> CompanyId {
        name.parse().unwrap()
    }

    fn numbers(notices: &[Arc<Notice>]) -> Vec<u64> {
        notices.iter().map(|notice| notice.place.number).collect()
    }

    #[tokio::test]
    async fn a_follower_of_a_company_is_told_of_that_company_only() {
        let feed = Arc::new(Feed::new(Arc::new(SystemClock)));
        let (acme, zeta) = (company("acme"), company("zeta"));
        let (mut mine, _) = feed.follower(feed.seat("ada").unwrap(), Some(&acme), None);
        let (mut all, _) = feed.follower(feed.seat("ops").unwrap(), None, None);
        for whose in [Some(&zeta), Some(&acme), None, Some(&acme)] {
            feed.publish(whose, HostEvent::Reset);
        }
        let heard = [mine.next().await.unwrap(), mine.next().await.unwrap()];
        assert_eq!(numbers(&heard), [1, 3]);
        for number in 0..4 {
            assert_eq!(numbers(&[all.next().await.unwrap()]), [number]);
        }
    }

    #[tokio::test]
    async fn whoever_comes_back_goes_on_behind_its_last_notice() {
        let feed = Arc::new(Feed::new(Arc::new(SystemClock)));
        told(&feed, 5);
        let last = feed.id(feed.ring.kept().0[1].1.place);
        let seat = || feed.seat("ada").unwrap();
        let (mut back, is_complete) = feed.follower(seat(), None, feed.place(&last));
        assert!(is_complete);
        assert_eq!(numbers(&[back.next().await.unwrap()]), [2]);
        let of_another_run = Place { run: 0, number: 1, at: Timestamp::UNIX_EPOCH };
        let (mut back, is_complete) = feed.follower(seat(), None, Some(of_another_run));
        let reset = back.next().await.unwrap();
        assert_eq!((is_complete, reset.happened.kind()), (false, "reset"));
        assert_eq!(numbers(&[reset]), [4], "it goes on with what comes next");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_many_publish_at_once_is_told_once_and_in_order() {
        let feed = Arc::new(Feed::new(Arc::new(SystemClock)));
        let (mut follower, _) = feed.follower(feed.seat("ada").unwrap(), None, None);
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let feed = Arc::clone(&feed);
                std::thread::spawn(move || {
                    for _ in 0..200 {
                        feed.publish(None, HostEvent::Reset);
                        std::thread::yield_now();
                    }
                })
            })
            .collect();
        for number in 0..800 {
            assert_eq!(numbers(&[follower.next().await.unwrap()]), [number]);
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn a_number_that_is_given_and_not_yet_stored_is_waited_for() {
        let feed = Feed::new(Arc::new(SystemClock));
        feed.ring.push(|number| {
            assert_eq!((number, feed.ring.end()), (0, 1));
            assert_eq!(feed.ring.read(0), Found::NotYet);
            told(&feed, 1);
            assert!(matches!(feed.ring.read(1), Found::Notice(_)));
            let place = Place { run: feed.run, number, at: feed.clock.now() };
            Notice { place, company_id: None, happened: HostEvent::Reset }
        });
        assert!(matches!(feed.ring.read(0), Found::Notice(_)));
    }

    #[tokio::test]
    async fn a_follower_that_waits_is_woken_by_a_notice_and_by_the_end() {
        let feed = Arc::new(Feed::new(Arc::new(SystemClock)));
        let (mut follower, _) = feed.follower(feed.seat("ada").unwrap(), None, None);
        let waits = tokio::spawn(async move {
            let first = follower.next().await.is_some();
            (first, follower.next().await.is_some())
        });
        while !feed.is_awaited.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        told(&feed, 1);
        while !feed.is_awaited.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        feed.close();
        assert_eq!(waits.await.unwrap(), (true, false));
    }
}
