//! The provider from outside, natively: against a MemOS in memory, through faults, and against what
//! MemOS's own client sends.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod calls;
mod faults;
mod server;
mod wire;

use memhost_memos::Memos;
use memhost_sdk::testing;
use serde_json::{Value, json};

/// A provider on an empty host.
#[allow(clippy::needless_pass_by_value, reason = "so that a test can write json!({}) in place")]
fn open(more: Value) -> Memos {
    let mut config = json!({"url": "http://127.0.0.1:8000", "userId": "u"});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    testing::open(config).unwrap()
}
