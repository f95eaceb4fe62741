//! The options and the result of an import.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use memhost_types::BindingKey;

/// The longest line of an import, in bytes: a record of 1 MiB whose every byte is escaped fits.
pub const MAX_LINE: usize = 16 << 20;

/// An operator's decisions before an import.
#[derive(Debug, Clone, Copy, Default)]
pub struct ImportOptions {
    /// Whether the grants and limits of the file are accepted. Otherwise they are requests.
    pub accepts_grants: bool,
    /// Whether records without a known scope become visible to the whole company. Otherwise they
    /// are refused.
    pub accepts_unscoped: bool,
}

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    /// Rows of tables.
    pub rows: u64,
    /// Operations.
    pub operations: u64,
    /// Records, written through their providers.
    pub records: u64,
    /// Records, or parts of a provider's own export, that wait for a decision about the grants of
    /// their binding.
    pub waiting: u64,
    /// Bindings whose grants and limits wait for a decision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requested: Vec<BindingKey>,
}

/// The result of a restore in place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Restored {
    /// The bindings that have the records of the file now.
    pub bindings: Vec<BindingKey>,
    /// Records, written through their providers.
    pub records: u64,
    /// Records of the file that were forgotten here since, and stay forgotten.
    pub forgotten: u64,
    /// Bindings of the file that are as they were before, with the reason.
    pub not_restored: BTreeMap<BindingKey, String>,
}
