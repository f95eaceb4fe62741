//! The `meter` import: what a call used of a service that charges for it, reported at any time
//! during the call.
//!
//! Usage in an answer is lost if the call fails, and some answers have no place for it. What is
//! reported here counts in both cases, and must not be in the answer, too.
//!
//! ```
//! # use memhost_sdk::{meter, testing, types::Usage};
//! # testing::reset(serde_json::json!({}));
//! meter::report(&Usage { output_tokens: Some(12), ..Usage::of("openai") });
//! assert_eq!(testing::reported()[0].output_tokens, Some(12));
//! ```

use crate::host::meter as raw;
use crate::types::{AttributionMode, BillingType, Usage};

/// Reports usage. At most 1,000 reports in a call: the host ends a call that makes more.
pub fn report(usage: &Usage) {
    raw::report(usage);
}

/// Reports one request to a service at a price that the operator configured, for services that tell
/// none; nothing without a price. `what` is the request, such as `search`.
pub fn charge(provider: &str, what: &str, cost_microcents: Option<u64>) {
    if cost_microcents.is_some() {
        report(&Usage {
            billing_type: Some(BillingType::MeteredApi),
            attribution_mode: Some(AttributionMode::BilledDirectly),
            cost_microcents,
            details: Some(serde_json::json!({"request": what}).to_string()),
            ..Usage::of(provider)
        });
    }
}
