//! What left the host for an operation: its requests to other systems, counted by origin.

use jiff::Timestamp;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BindingKey, Usage};

/// The most origins that an operation names. Requests to further ones are counted together.
const MOST_ORIGINS: usize = 32;
/// The origin of what is counted together because there are too many. No origin is called so.
pub const OTHER_ORIGINS: &str = "other";
/// The origin of requests that no grant allows. A guest chooses the names in them, so that they are
/// counted together; the log of the operation has them.
pub const NOT_GRANTED: &str = "not granted";

/// Requests to one origin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OutgoingCounts {
    /// Requests that were sent, or for which a connection was tried.
    pub requests: u64,
    /// Those of them that got no answer.
    pub failed: u64,
    /// Requests that the host did not let out.
    pub refused: u64,
    /// Bytes of paths, headers and bodies that were sent, without the secrets that the host put in.
    pub bytes_sent: u64,
    /// Bytes of bodies that came back, as they were sent.
    pub bytes_received: u64,
}

impl OutgoingCounts {
    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds other requests.
    pub fn add(&mut self, other: &Self) {
        let sums = [
            (&mut self.requests, other.requests),
            (&mut self.failed, other.failed),
            (&mut self.refused, other.refused),
            (&mut self.bytes_sent, other.bytes_sent),
            (&mut self.bytes_received, other.bytes_received),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
    }
}

/// Requests of one operation to one origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutgoingTo {
    /// The origin as it was granted, such as `https://api.example.com`; `not granted` for what no
    /// grant allows, and `other` where there are too many.
    pub origin: String,
    /// The host itself sent them: it asked its embedding model's endpoint.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_host: bool,
    /// How many, and their bytes.
    #[serde(flatten)]
    pub counts: OutgoingCounts,
}

/// Requests by origin. Empty, it takes no memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outgoing(Vec<OutgoingTo>);

impl Outgoing {
    /// Whether nothing was sent or refused.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A request leaves. It counts as failed until it is [answered](Self::answered).
    pub fn sent(&mut self, origin: &str, by_host: bool, bytes: u64) {
        let sent = OutgoingCounts { requests: 1, failed: 1, bytes_sent: bytes, ..<_>::default() };
        self.at(origin, by_host).add(&sent);
    }

    /// A request that was counted as sent got an answer.
    pub fn answered(&mut self, origin: &str, by_host: bool, bytes: u64) {
        let counts = self.at(origin, by_host);
        counts.failed = counts.failed.saturating_sub(1);
        counts.add(&OutgoingCounts { bytes_received: bytes, ..<_>::default() });
    }

    /// A request was not let out.
    pub fn refused(&mut self, origin: &str) {
        self.at(origin, false).add(&OutgoingCounts { refused: 1, ..<_>::default() });
    }

    /// Adds what another call sent.
    pub fn extend(&mut self, further: Self) {
        for to in further.0 {
            self.at(&to.origin, to.by_host).add(&to.counts);
        }
    }

    /// As an operation keeps it.
    pub fn into_vec(self) -> Vec<OutgoingTo> {
        self.0
    }

    fn at(&mut self, origin: &str, by_host: bool) -> &mut OutgoingCounts {
        let place = |all: &[OutgoingTo], origin: &str| {
            all.iter().position(|to| to.origin == origin && to.by_host == by_host)
        };
        let is_full = self.0.len() >= MOST_ORIGINS;
        let at = place(&self.0, origin).or_else(|| match is_full {
            true => place(&self.0, OTHER_ORIGINS),
            false => None,
        });
        let at = at.unwrap_or_else(|| {
            let origin = if is_full { OTHER_ORIGINS } else { origin }.to_owned();
            self.0.push(OutgoingTo { origin, by_host, counts: OutgoingCounts::default() });
            self.0.len() - 1
        });
        &mut self.0[at].counts
    }
}

impl From<Vec<OutgoingTo>> for Outgoing {
    fn from(all: Vec<OutgoingTo>) -> Self {
        Self(all)
    }
}

/// What a call of a provider used beside its answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallUsage {
    /// What the host's own imports used, and what the provider reported.
    pub usage: Vec<Usage>,
    /// What it sent.
    pub outgoing: Outgoing,
}

impl CallUsage {
    /// Whether it used nothing.
    pub fn is_empty(&self) -> bool {
        self.usage.is_empty() && self.outgoing.is_empty()
    }

    /// Adds what a further call used.
    pub fn extend(&mut self, further: Self) {
        self.usage.extend(further.usage);
        self.outgoing.extend(further.outgoing);
    }

    /// The same with what a further call used.
    #[must_use]
    pub fn and(mut self, further: Self) -> Self {
        self.extend(further);
        self
    }
}

impl From<Vec<Usage>> for CallUsage {
    fn from(usage: Vec<Usage>) -> Self {
        Self { usage, outgoing: Outgoing::default() }
    }
}

/// What left the host for one binding to one origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutgoingRow {
    /// The origin as it was granted; `not granted` for what no grant allows, and `other` for all
    /// rows that the list has no room for.
    pub origin: String,
    /// For which binding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<BindingKey>,
    /// Which provider sent it; `memhost` for the host itself, which asks its embedding model's
    /// endpoint.
    pub provider: String,
    /// How many, and their bytes.
    #[serde(flatten)]
    pub counts: OutgoingCounts,
    /// When the last operation with such a request began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_at: Option<Timestamp>,
}

/// What left the host on some days, most bytes first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutgoingReport {
    /// The first day, in UTC.
    pub since: Date,
    /// The last day.
    pub until: Date,
    /// One row an origin, binding and provider: at most 500, and one for all others.
    pub items: Vec<OutgoingRow>,
    /// How many rows are counted together in the last one.
    pub others: u64,
    /// All of them together.
    pub total: OutgoingCounts,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_origin_and_a_flood_of_origins_together() {
        let mut outgoing = Outgoing::default();
        outgoing.sent("https://a", false, 10);
        outgoing.sent("https://a", false, 5);
        outgoing.answered("https://a", false, 7);
        outgoing.sent("https://a", true, 1);
        outgoing.refused(NOT_GRANTED);
        let mut twice = outgoing.clone();
        twice.extend(outgoing.clone());
        let all = twice.into_vec();
        let counts = OutgoingCounts {
            requests: 4,
            failed: 2,
            bytes_sent: 30,
            bytes_received: 14,
            refused: 0,
        };
        assert_eq!((all.len(), all[0].counts), (3, counts));
        assert_eq!(all[2].counts, OutgoingCounts { refused: 2, ..<_>::default() });
        for number in 0..100 {
            outgoing.sent(&format!("https://{number}"), false, 1);
        }
        let all = outgoing.into_vec();
        assert_eq!(all.len(), MOST_ORIGINS + 1);
        assert_eq!(all.iter().map(|to| to.counts.requests).sum::<u64>(), 103);
        assert_eq!(all[MOST_ORIGINS].origin, OTHER_ORIGINS);
    }
}
