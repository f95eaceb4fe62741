//! The provider from outside, natively: against a mem0 in memory, through faults, and against what
//! mem0's own server answered.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod faults;
mod recorded;
mod records;
mod server;
mod wire;

use memhost_mem0::Mem0;
use memhost_sdk::testing;
use serde_json::{Value, json};

const URL: &str = "http://127.0.0.1:8000";

/// A provider on an empty host, for one of the two APIs.
#[allow(clippy::needless_pass_by_value, reason = "so that a test can write json!({}) in place")]
fn open(api: &str, more: Value) -> Mem0 {
    let mut config = json!({"url": URL, "api": api, "userId": "u"});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    testing::open(config).unwrap()
}
