//! The `call` import: what is left of the present call, and what the operator gave the binding.
//!
//! ```
//! # use memhost_sdk::{call, testing};
//! # testing::reset(serde_json::json!({}));
//! // A request gets a share of what is left, so that there is time to answer.
//! let timeout = call::remaining() * 8 / 10;
//! assert!(timeout.as_secs() > 1);
//! assert_eq!(call::limit("outgoingRequests"), None, "this host has no such limit");
//! ```

use std::time::Duration;

pub use crate::bindings::provider::paperclip::memory::call::{Grant, HttpGrant};
use crate::host::call as raw;

/// How long the host lets this call go on: in steps of 100 ms without the permission `clock`.
pub fn remaining() -> Duration {
    Duration::from_millis(raw::remaining_ms())
}

/// A limit of the binding by the name that operators know it by. `None` if this host has no such
/// limit.
pub fn limit(name: &str) -> Option<u64> {
    raw::get_limit(name)
}

/// What the component asks for and the operator granted. Origins from the configuration are
/// resolved.
pub fn grants() -> Vec<Grant> {
    raw::grants()
}
