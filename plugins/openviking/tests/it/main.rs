//! The provider from outside, natively: against an OpenViking in memory, through faults, and
//! against what the real server answered.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod faults;
mod recorded;
mod records;
mod server;
mod sessions;

use memhost_openviking::OpenViking;
use memhost_sdk::testing;
use serde_json::{Value, json};

/// A provider on an empty host.
#[allow(clippy::needless_pass_by_value, reason = "so that a test can write json!({}) in place")]
fn open(more: Value) -> OpenViking {
    let mut config = json!({"url": "http://127.0.0.1:1933"});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    testing::open(config).unwrap()
}
