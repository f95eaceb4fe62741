//! Who has a place among the connections of a host, and who makes room for whom.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::options::ConnectionOptions;

/// Connections beyond the limit on which only health checks are answered.
pub(super) const RESERVED: usize = 32;

/// What a connection does. Where two phases have equally many connections, a full host closes one
/// of the earlier phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// No request has come yet, or only a part of one.
    New,
    /// It had requests, and the next one has not come.
    Idle,
    /// The head of a request has come, and the host waits for its body.
    Body,
    /// The host works on a request or writes the answer. Such a connection is not closed to make
    /// room.
    Busy,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) since: Instant,
    /// The first byte of the next head.
    pub(super) head_began: Option<Instant>,
}

/// One connection, for the host and for its own task.
#[derive(Debug)]
pub(super) struct Connection {
    /// Its network, with IPv6.
    address: Option<IpAddr>,
    pub(super) is_reserved: bool,
    pub(super) state: Mutex<State>,
    /// Somebody needs its place.
    pub(super) evicted: Notify,
}

impl Connection {
    pub(super) fn enter(&self, phase: Phase) {
        let mut state = self.state.lock();
        *state = State { phase, since: Instant::now(), head_began: None };
    }
}

#[derive(Debug, Default)]
pub(super) struct Open {
    next: u64,
    pub(super) by_number: HashMap<u64, Arc<Connection>>,
    pub(super) by_address: HashMap<IpAddr, usize>,
    pub(super) reserved: usize,
}

impl Open {
    fn remove(&mut self, number: u64) -> Option<Arc<Connection>> {
        let connection = self.by_number.remove(&number)?;
        if connection.is_reserved {
            self.reserved -= 1;
        } else if let Some(address) = connection.address
            && let Some(count) = self.by_address.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
        Some(connection)
    }

    /// Closes the oldest of the connections that the host waits for in the phase that has most of
    /// them, which is where an attacker's are: a new connection is not closed for those whose
    /// bodies do not come. Answers whether there was one.
    fn evict(&mut self, may: impl Fn(&Connection) -> bool) -> bool {
        let mut waiting: BTreeMap<Phase, (usize, Instant, u64)> = BTreeMap::new();
        for (number, connection) in self.by_number.iter().filter(|(_, connection)| may(connection))
        {
            let state = connection.state.lock();
            if state.phase != Phase::Busy {
                let (count, since, oldest) =
                    waiting.entry(state.phase).or_insert((0, state.since, *number));
                *count += 1;
                (*since, *oldest) = (*since, *oldest).min((state.since, *number));
            }
        }
        // Where two phases have equally many, the earlier one.
        let most = waiting.into_iter().max_by_key(|(phase, (count, ..))| (*count, Reverse(*phase)));
        let Some((_, (.., number))) = most else { return false };
        let Some(connection) = self.remove(number) else { return false };
        connection.evicted.notify_one();
        true
    }
}

/// What counts as one address. One side has every address of an IPv6 network of 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(one) => {
            let [a, b, c, d, ..] = one.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
    }
}

/// All connections of a host.
#[derive(Debug)]
pub(crate) struct Connections {
    pub(super) options: ConnectionOptions,
    pub(super) open: Mutex<Open>,
}

/// A connection's place. Dropping it gives the place back.
#[derive(Debug)]
pub(crate) struct Place {
    pub(super) all: Arc<Connections>,
    pub(super) number: u64,
    pub(super) connection: Arc<Connection>,
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.all.open.lock().remove(self.number));
    }
}

impl Connections {
    pub(crate) fn new(options: ConnectionOptions) -> Arc<Self> {
        Arc::new(Self { options, open: Mutex::default() })
    }

    /// A place for a new connection. `None`: the host works on a request of every connection.
    pub(crate) fn admit(self: &Arc<Self>, address: Option<IpAddr>) -> Option<Place> {
        let address = address.map(network);
        let mut open = self.open.lock();
        let of_address =
            address.and_then(|address| open.by_address.get(&address)).copied().unwrap_or(0);
        let is_its_own =
            |connection: &Connection| !connection.is_reserved && connection.address == address;
        let address_has_room = of_address < self.options.max_per_address || open.evict(is_its_own);
        let has_room = || open.by_number.len() - open.reserved < self.options.max;
        let is_reserved =
            !(address_has_room && (has_room() || open.evict(|connection| !connection.is_reserved)));
        if is_reserved
            && open.reserved >= RESERVED
            && !open.evict(|connection| connection.is_reserved)
        {
            return None;
        }
        match address {
            _ if is_reserved => open.reserved += 1,
            Some(address) => *open.by_address.entry(address).or_default() += 1,
            None => {}
        }
        let state = State { phase: Phase::New, since: Instant::now(), head_began: None };
        let connection = Arc::new(Connection {
            address,
            is_reserved,
            state: Mutex::new(state),
            evicted: Notify::new(),
        });
        let number = open.next;
        open.next += 1;
        open.by_number.insert(number, Arc::clone(&connection));
        Some(Place { all: Arc::clone(self), number, connection })
    }

    /// Closes a connection that the host only waits for: the system has no file for another one.
    pub(crate) fn make_room(&self) {
        self.open.lock().evict(|_| true);
    }
}
