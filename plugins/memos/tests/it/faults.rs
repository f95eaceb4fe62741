//! A MemOS that is limited, fails, is slow, cuts connections, answers nonsense or names other
//! memories: what is captured is there once, and what is not there is not told as done.

use memhost_sdk::testing::faults::hold_learnt;
use memhost_sdk::types::*;
use serde_json::json;

use super::open;
use super::server::State;

#[test]
fn captures_corrections_and_forgetting_hold() {
    hold_learnt::<State, _>(|| open(json!({})), ForgetEffect::HistoryKept);
}
