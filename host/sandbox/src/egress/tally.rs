//! Counting what a call and a minute send.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::EgressError;
use memhost_ports::OutgoingCounter;

/// The transfer of one call of a binding so far.
pub(crate) struct Tally {
    requests: AtomicU32,
    sent: AtomicU64,
    received: AtomicU64,
    ended: watch::Sender<bool>,
    by_origin: OutgoingCounter,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            requests: AtomicU32::new(0),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            ended: watch::Sender::new(false),
            by_origin: OutgoingCounter::default(),
        }
    }
}

impl Tally {
    pub(super) fn take_request(&self, most: u32) -> Result<(), EgressError> {
        match self.requests.fetch_add(1, Ordering::Relaxed) < most {
            true => Ok(()),
            false => Err(EgressError::limit("outgoingRequests", most.into())),
        }
    }

    pub(super) fn take_sent(&self, bytes: u64, most: u64) -> Result<(), EgressError> {
        take(&self.sent, bytes, most, "outgoingBytes")
    }

    pub(super) fn take_received(&self, bytes: u64, most: u64) -> Result<(), EgressError> {
        take(&self.received, bytes, most, "incomingBytes")
    }

    /// What left, by origin.
    pub(super) fn by_origin(&self) -> &OutgoingCounter {
        &self.by_origin
    }

    pub(super) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    pub(super) fn end(&self) {
        self.ended.send_replace(true);
    }

    pub(super) async fn ended(&self) {
        // The sender is this very value, so that waiting cannot fail.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }
}

fn take(sum: &AtomicU64, bytes: u64, most: u64, name: &'static str) -> Result<(), EgressError> {
    match sum.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= most {
        true => Ok(()),
        false => Err(EgressError::limit(name, most)),
    }
}

/// Requests of the present minute and, weighted by how much of it is still within sixty seconds, of
/// the one before.
pub(super) struct Minute {
    began: Instant,
    before: u32,
    present: u32,
}

impl Minute {
    pub(super) fn new(now: Instant) -> Self {
        Self { began: now, before: 0, present: 0 }
    }

    /// Whether one more request may go out now.
    pub(super) fn take(&mut self, now: Instant, most: u32) -> bool {
        if self.used(now) + 1.0 > f64::from(most) {
            return false;
        }
        self.present += 1;
        true
    }

    /// How many went out within sixty seconds, as far as two counts can tell.
    pub(super) fn used(&mut self, now: Instant) -> f64 {
        const MINUTE: Duration = Duration::from_secs(60);
        let since = now.duration_since(self.began);
        if since >= MINUTE {
            self.before = if since < MINUTE * 2 { self.present } else { 0 };
            self.present = 0;
            self.began = if since < MINUTE * 2 { self.began + MINUTE } else { now };
        }
        let left = MINUTE.saturating_sub(now.duration_since(self.began)).as_secs_f64()
            / MINUTE.as_secs_f64();
        f64::from(self.before).mul_add(left, f64::from(self.present))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sixty_seconds_have_much_more_than_a_minutes_share() {
        let began = Instant::now();
        let mut minute = Minute::new(began);
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut taken = |seconds| (0..20).filter(|_| minute.take(at(seconds), 10)).count();
        assert_eq!(taken(59), 10);
        assert_eq!(taken(61), 0, "the minute before still counts");
        assert_eq!(taken(90), 5);
        assert_eq!(taken(500), 10);
    }

    #[test]
    fn a_call_has_its_share_once() {
        let tally = Tally::default();
        assert!(tally.take_request(1).is_ok());
        assert!(tally.take_request(1).unwrap_err().to_string().contains("outgoingRequests"));
        assert!(tally.take_sent(10, 10).is_ok());
        assert!(tally.take_sent(1, 10).unwrap_err().to_string().contains("outgoingBytes"));
        assert!(tally.take_received(11, 10).unwrap_err().to_string().contains("incomingBytes"));
    }
}
