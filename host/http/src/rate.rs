//! The headers that say how the rate of a binding stands.

use axum::http::{HeaderMap, HeaderValue};
use memhost_core::RateState;

/// Sets the headers that say how the rate of a binding stands.
pub(crate) fn set_rate(headers: &mut HeaderMap, rate: RateState) {
    let seconds = u64::try_from(rate.full_in.as_millis().div_ceil(1_000)).unwrap_or(u64::MAX);
    let policy = format!("\"callsPerSecond\";q={};w=1", rate.per_second);
    let now = format!("\"callsPerSecond\";r={};t={seconds}", rate.left);
    for (name, value) in [("ratelimit-policy", policy), ("ratelimit", now)] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
}
