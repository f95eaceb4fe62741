//! Connections that stay open for a binding's next request to the same server: a provider that
//! writes thirty records one by one would make thirty connections otherwise, each with its TLS
//! handshake.

use std::sync::{Arc, Weak};
use std::time::Duration;

use ipnet::IpNet;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::client::Connection;
use memhost_types::HttpTarget;

/// The most open connections of all bindings that no request uses.
pub(super) const MOST_OF_ALL: usize = 256;
/// The most of one binding.
const MOST: usize = 4;
/// How long one is kept without a request. Servers close idle connections themselves, the quick
/// ones after two seconds; a request that meets a closing connection may or may not have been
/// received.
const IDLE: Duration = Duration::from_millis(1_500);
/// How long one is used: then the server's name is resolved and its address checked again.
const LIFETIME: Duration = Duration::from_secs(60);

/// The connections of one binding that no request uses.
pub(super) struct ConnectionPool {
    idle: Arc<Mutex<Vec<Idle>>>,
    places: Arc<Semaphore>,
    most: usize,
    /// [`IDLE`] and [`LIFETIME`].
    idle_time: Duration,
    lifetime: Duration,
}

struct Idle {
    target: HttpTarget,
    /// The ranges of private addresses that were granted when the address was checked.
    ranges: Vec<IpNet>,
    connection: Connection,
    until: Instant,
    /// One of [`MOST_OF_ALL`].
    _place: OwnedSemaphorePermit,
}

impl ConnectionPool {
    /// `places` are those of all bindings. No more are kept than the binding may have.
    pub(super) fn new(places: Arc<Semaphore>, may_have: usize) -> Self {
        Self {
            idle: Arc::default(),
            places,
            most: MOST.min(may_have),
            idle_time: IDLE,
            lifetime: LIFETIME,
        }
    }

    /// A connection to the target that takes a request at once.
    pub(super) async fn take(&self, target: &HttpTarget, ranges: &[IpNet]) -> Option<Connection> {
        loop {
            let mut found = {
                let mut idle = self.idle.lock();
                let now = Instant::now();
                let fits = |idle: &Idle| {
                    idle.until > now && idle.target == *target && idle.ranges == ranges
                };
                let at = idle.iter().rposition(fits)?;
                idle.swap_remove(at)
            };
            if found.connection.is_ready().await {
                return Some(found.connection);
            }
        }
    }

    /// Keeps a connection whose answer was read to its end, unless there are enough.
    pub(super) fn put(&self, target: HttpTarget, ranges: Vec<IpNet>, connection: Connection) {
        let now = Instant::now();
        let until = (now + self.idle_time).min(connection.opened + self.lifetime);
        if until <= now || connection.is_closed() {
            return;
        }
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else { return };
        let mut idle = self.idle.lock();
        idle.retain(|idle| idle.until > now);
        if idle.len() < self.most {
            idle.push(Idle { target, ranges, connection, until, _place: place });
            drop(idle);
            let all = Arc::downgrade(&self.idle);
            memhost_executor::spawn(close_at(until, all));
        }
    }

    /// Closes all.
    pub(super) fn close(&self) {
        let closed = std::mem::take(&mut *self.idle.lock());
        drop(closed);
    }
}

/// Closes those whose time is over, although no request comes.
async fn close_at(until: Instant, all: Weak<Mutex<Vec<Idle>>>) {
    tokio::time::sleep_until(until).await;
    if let Some(all) = all.upgrade() {
        all.lock().retain(|idle| idle.until > until);
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::Connection;
    use super::*;

    fn target() -> HttpTarget {
        HttpTarget::parse(Some("https"), "api.example").unwrap()
    }

    /// A connection, and its other end.
    async fn connection() -> (Connection, tokio::io::DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(64);
        (Connection::over(ours).await.unwrap(), theirs)
    }

    /// A pool whose connections stay longer than a test takes.
    fn pool(places: &Arc<Semaphore>) -> ConnectionPool {
        let pool = ConnectionPool::new(Arc::clone(places), 16);
        ConnectionPool { idle_time: LIFETIME, ..pool }
    }

    #[tokio::test]
    async fn a_connection_serves_its_target_and_ranges() {
        let (pool, ranges) = (pool(&Arc::new(Semaphore::new(9))), ["127.0.0.0/8".parse().unwrap()]);
        let (one, _end) = connection().await;
        pool.put(target(), ranges.to_vec(), one);
        let other = HttpTarget::parse(Some("https"), "other.example").unwrap();
        assert!(pool.take(&other, &ranges).await.is_none());
        assert!(
            pool.take(&target(), &[]).await.is_none(),
            "another grant may not reach that address"
        );
        assert!(pool.take(&target(), &ranges).await.is_some());
    }

    #[tokio::test]
    async fn an_idle_connection_is_closed_although_nobody_asks() {
        let places = Arc::new(Semaphore::new(9));
        let idle_time = Duration::from_millis(1);
        let pool = ConnectionPool { idle_time, ..pool(&places) };
        let mut ends = Vec::new();
        for _ in 0..2 {
            let (one, end) = connection().await;
            ends.push(end);
            pool.put(target(), Vec::new(), one);
        }
        // All are free once both are closed.
        drop(places.acquire_many(9).await.unwrap());
        assert!(pool.idle.lock().is_empty());
    }

    #[tokio::test]
    async fn an_old_a_closed_and_one_too_many_are_not_kept() {
        let (few, mut ends) = (pool(&Arc::new(Semaphore::new(MOST + 2))), Vec::new());
        for _ in 0..MOST + 1 {
            let (one, end) = connection().await;
            ends.push(end);
            few.put(target(), Vec::new(), one);
        }
        assert_eq!(few.idle.lock().len(), MOST);
        few.close();
        assert!(few.take(&target(), &[]).await.is_none());
        // All bindings have one place together.
        let one_place = Arc::new(Semaphore::new(1));
        let (first, second) = (pool(&one_place), pool(&one_place));
        for pool in [&first, &second] {
            let (one, end) = connection().await;
            ends.push(end);
            pool.put(target(), Vec::new(), one);
        }
        assert!(second.take(&target(), &[]).await.is_none());
        // The other side hangs up.
        ends.clear();
        assert!(first.take(&target(), &[]).await.is_none());
        let (old, _end) = connection().await;
        let short = ConnectionPool { lifetime: Duration::ZERO, ..first };
        short.put(target(), Vec::new(), old);
        assert!(short.idle.lock().is_empty());
    }
}
