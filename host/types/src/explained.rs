//! What an operation returned, and what became of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::named::named;
use super::{Explanation, OperationId, RecordHandle};

named!(
    /// What became of a record since an operation returned it.
    RecordFate, "state" {
        /// Nothing wrote it since.
        Unchanged = "unchanged",
        /// It was written or corrected since.
        Changed = "changed",
        /// The host has it no more: it was forgotten, replaced, or has expired.
        Gone = "gone",
        /// The host keeps nothing about it, such as about what a provider made by itself.
        Unknown = "unknown",
    }
);

/// A record that an operation returned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReturnedRecord {
    /// Its place in the answer, from 1.
    pub rank: u32,
    /// The record.
    pub handle: RecordHandle,
    /// What became of it since.
    pub state: RecordFate,
    /// Whether the token budget left it out of the block that the run got.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_omitted: bool,
    /// The operation that changed or removed it, where the log still has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<OperationId>,
}

/// An operation, explained from what the host kept of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedOperation {
    /// The operation.
    pub operation_id: OperationId,
    /// What it returned, best first.
    pub records: Vec<ReturnedRecord>,
    /// Whether these are all. The log keeps the first 100 handles of an answer.
    pub is_complete: bool,
    /// How the provider answers the same request now, for who asked for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Explanation>,
    /// Why there is no such answer, for who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_again: Option<String>,
}
