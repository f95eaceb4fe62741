//! The feed of events for followers: operations and jobs once they are on disk, budgets whose state changes, and plugins
//! that are added or removed.
//!
//! Some events do not wait for the disk: a budget that a call changes, a read with relaxed audit, an operation that was
//! interrupted, and a write whose intent could not be stored.
//!
//! The last notices are kept in memory, so that a follower that lost its connection continues where it was. A follower
//! that was away for longer, or during a restart, gets a reset and the operations that ended meanwhile, from the log.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::plugins::PluginChange;
use memhost_ports::Clock;
use memhost_store::{self as store, Table, TableWrite};
use memhost_types::{BudgetView, CompanyId, Job, Operation};

/// Notices that are kept.
const KEPT: usize = 1_024;

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum HostEvent {
    /// An operation ended. Without its guest's log and the snapshot of its request, which the operation log has.
    Operation(Arc<Operation>),
    /// A job is new or has changed.
    Job(Box<Job>),
    /// The state of a budget has changed.
    Budget(Box<BudgetView>),
    /// A plugin's file was admitted, refused or removed.
    Plugin(PluginChange),
    /// Events before this were missed: who shows a list must read it again.
    Reset,
}

impl HostEvent {
    /// Every name that can be asked for.
    pub const KINDS: [&'static str; 4] = ["operation", "job", "budget", "plugin"];

    /// Its name.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Operation(_) => "operation",
            Self::Job(_) => "job",
            Self::Budget(_) => "budget",
            Self::Plugin(_) => "plugin",
            Self::Reset => "reset",
        }
    }
}

/// An event with its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// Where to go on from after this one; opaque.
    pub id: String,
    /// Whose; none: the host's.
    pub company_id: Option<CompanyId>,
    /// What.
    pub happened: HostEvent,
}

/// The position of a follower.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// The run of the host.
    run: u64,
    number: u64,
    pub(crate) at: Timestamp,
}

impl Place {
    /// A position of no run: a follower that continues from here reads the log again.
    pub(crate) fn in_the_log(at: Timestamp) -> Self {
        Self { run: 0, number: 0, at }
    }

    pub(crate) fn id(self) -> String {
        format!("{:x}-{}-{}", self.run, self.number, self.at.as_millisecond())
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-');
        let run = u64::from_str_radix(parts.next()?, 16).ok()?;
        let number = parts.next()?.parse().ok()?;
        let at = Timestamp::from_millisecond(parts.next()?.parse().ok()?).ok()?;
        Some(Self { run, number, at })
    }
}

#[derive(Default)]
struct Ring {
    /// The number of the first one that is kept.
    first: u64,
    kept: VecDeque<Arc<Notice>>,
}

impl Ring {
    fn end(&self) -> u64 {
        self.first + self.kept.len() as u64
    }
}

/// The number after the last notice; none where the host stops.
type End = Option<u64>;

/// The feed of a host.
pub(crate) struct Feed {
    run: u64,
    clock: Arc<dyn Clock>,
    ring: Mutex<Ring>,
    end: watch::Sender<End>,
}

impl Feed {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let run = u64::try_from(clock.random() & u128::from(u64::MAX)).unwrap_or(1);
        Self { run, clock, ring: Mutex::default(), end: watch::Sender::new(Some(0)) }
    }

    pub(crate) fn publish(&self, company: Option<&CompanyId>, happened: HostEvent) {
        let at = self.clock.now();
        let mut ring = self.ring.lock();
        let id = Place { run: self.run, number: ring.end(), at }.id();
        ring.kept.push_back(Arc::new(Notice { id, company_id: company.cloned(), happened }));
        if ring.kept.len() > KEPT {
            ring.kept.pop_front();
            ring.first += 1;
        }
        let end = ring.end();
        drop(ring);
        self.end.send_modify(|known| *known = known.map(|known| known.max(end)));
    }

    pub(crate) fn operation(&self, operation: &Arc<Operation>) {
        let told = match operation.log.is_empty() && operation.payload.is_none() {
            true => Arc::clone(operation),
            false => Arc::new(Operation { log: Vec::new(), payload: None, ..Operation::clone(operation) }),
        };
        self.publish(Some(&operation.company_id), HostEvent::Operation(told));
    }

    pub(crate) fn job(&self, job: Job) {
        let company = job.company_id.clone();
        self.publish(Some(&company), HostEvent::Job(Box::new(job)));
    }

    /// Publishes the jobs among the table writes of an operation.
    pub(crate) fn jobs(&self, written: &[TableWrite]) {
        for write in written.iter().filter(|write| write.table == Table::Jobs) {
            match write.new.as_deref().map(|value| store::decode::<Job>("job", value)) {
                Some(Ok(job)) => self.job(job),
                Some(Err(error)) => tracing::error!(%error, "a job that was written cannot be published"),
                None => {}
            }
        }
    }

    pub(crate) fn budget(&self, view: BudgetView) {
        let company = view.budget.company_id.clone();
        self.publish(Some(&company), HostEvent::Budget(Box::new(view)));
    }

    /// Ends all followers, also new ones.
    pub(crate) fn close(&self) {
        self.end.send_replace(None);
    }

    /// A follower of what happens after an earlier notice, or from now on. Answers false with it where notices in between
    /// are no longer kept; it begins with a reset then.
    pub(crate) fn follower(self: &Arc<Self>, company: Option<&CompanyId>, after: Option<Place>) -> (Follower, bool) {
        let (first, end) = {
            let ring = self.ring.lock();
            (ring.first, ring.end())
        };
        let mut follower = Follower {
            feed: Arc::clone(self),
            company: company.cloned(),
            number: end,
            end: self.end.subscribe(),
            caught_up: VecDeque::new(),
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
        Notice { id: place.id(), company_id: company.cloned(), happened: HostEvent::Reset }
    }
}

/// A follower of the feed.
pub struct Follower {
    feed: Arc<Feed>,
    company: Option<CompanyId>,
    number: u64,
    end: watch::Receiver<End>,
    caught_up: VecDeque<Arc<Notice>>,
}

impl Follower {
    /// Adds notices that come before the next event.
    pub(crate) fn catch_up(&mut self, notices: Vec<Arc<Notice>>) {
        self.caught_up.extend(notices);
    }

    /// Waits for the next event; none where the host stops.
    pub async fn next(&mut self) -> Option<Arc<Notice>> {
        loop {
            if let Some(notice) = self.caught_up.pop_front() {
                return Some(notice);
            }
            let end = (*self.end.borrow_and_update())?;
            while self.number < end {
                let kept = {
                    let ring = self.feed.ring.lock();
                    match self.number.checked_sub(ring.first) {
                        Some(index) => usize::try_from(index).ok().and_then(|index| ring.kept.get(index).cloned()),
                        None => {
                            // A follower that reads too slowly misses events.
                            self.number = ring.first;
                            return Some(Arc::new(self.feed.reset(self.company.as_ref(), ring.first)));
                        }
                    }
                };
                self.number += 1;
                let is_mine = |notice: &Arc<Notice>| self.company.is_none() || notice.company_id == self.company;
                if let Some(notice) = kept.filter(is_mine) {
                    return Some(notice);
                }
            }
            self.end.changed().await.ok()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memhost_ports::SystemClock;

    fn told(feed: &Feed, count: usize) {
        (0..count).for_each(|_| feed.publish(None, HostEvent::Reset));
    }

    #[test]
    fn only_the_last_notices_are_kept_and_their_numbers_go_on() {
        let feed = Feed::new(Arc::new(SystemClock));
        told(&feed, KEPT + 10);
        let ring = feed.ring.lock();
        assert_eq!((ring.first, ring.end(), ring.kept.len()), (10, KEPT as u64 + 10, KEPT));
        let place = Place::parse(&ring.kept[0].id).unwrap();
        assert_eq!((place.run, place.number), (feed.run, 10));
    }

    #[test]
    fn whoever_was_told_of_a_gap_before_anything_else_is_told_so_again() {
        let feed = Feed::new(Arc::new(SystemClock));
        let run = |before| Place::parse(&feed.reset(None, before).id).unwrap().run;
        assert_eq!((run(0), run(1)), (0, feed.run), "the first notice has the number 0");
    }

    #[test]
    fn what_is_no_place_is_none() {
        assert!(["", "x", "1-2", "1-2-x", "g-1-1", "1-2-3-4"].iter().all(|text| Place::parse(text).is_none()));
    }

    #[tokio::test]
    async fn whoever_is_too_slow_is_told_so_and_goes_on() {
        let feed = Arc::new(Feed::new(Arc::new(SystemClock)));
        let end = feed.end.subscribe();
        let mut follower =
            Follower { feed: Arc::clone(&feed), company: None, number: 0, end, caught_up: VecDeque::new() };
        told(&feed, KEPT + 3);
        let first = follower.next().await.unwrap();
        assert_eq!(first.happened.kind(), "reset");
        assert_eq!(Place::parse(&first.id).unwrap().number, 2, "whoever comes back with it goes on behind the gap");
        for number in 3..KEPT as u64 + 3 {
            assert_eq!(Place::parse(&follower.next().await.unwrap().id).unwrap().number, number);
        }
        feed.close();
        assert!(follower.next().await.is_none());
        told(&feed, 1);
        assert!(follower.next().await.is_none(), "what is closed stays so");
    }
}
