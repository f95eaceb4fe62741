//! The provider from outside, natively: against a claude-mem in memory, through faults, and against
//! what the real worker answered.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod faults;
mod recorded;
mod records;
mod server;
mod sessions;

use memhost_claude_mem::ClaudeMem;
use memhost_sdk::testing;
use serde_json::{Value, json};

/// A provider on an empty host.
#[allow(clippy::needless_pass_by_value, reason = "so that a test can write json!({}) in place")]
fn open(more: Value) -> ClaudeMem {
    let mut config = json!({"url": "http://127.0.0.1:37777"});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    testing::open(config).unwrap()
}
