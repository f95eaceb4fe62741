//! The binding's configuration.

use memhost_sdk::schemars::{self, JsonSchema};
use serde::Deserialize;

/// What an operator sets.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// Where MemOS is: `https://memos.memtensor.cn/api/openmem/v1`, or the address that its console
    /// names.
    pub url: String,
    /// Whose memories these are at MemOS; without it `memhost-` and the company.
    #[schemars(regex(pattern = r"^\S{1,100}$"))]
    pub user_id: Option<String>,
    /// The least relevance of a hit, 0 to 1; without it MemOS's own.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub threshold: Option<f64>,
    /// What it costs to add, in millionths of a cent. MemOS tells no costs.
    pub add_microcents: Option<u64>,
    /// What it costs to search.
    pub search_microcents: Option<u64>,
}
