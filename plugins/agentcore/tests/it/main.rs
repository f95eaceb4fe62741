//! The provider from outside, natively: against an AgentCore in memory, through faults, and against
//! what the stand-in answered, which botocore has checked.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod calls;
mod faults;
mod recorded;
mod server;

use memhost_agentcore::AgentCore;
use memhost_sdk::testing;
use serde_json::{Value, json};

/// A provider on an empty host.
#[allow(clippy::needless_pass_by_value, reason = "so that a test can write json!({}) in place")]
fn open(more: Value) -> AgentCore {
    let mut config = json!({
        "url": "http://127.0.0.1:8000", "memoryId": "memhost-AbCdEf0123", "indexed": ["topic"],
    });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    testing::open(config).unwrap()
}
