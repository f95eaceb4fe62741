//! The binding's configuration.

use memhost_sdk::schemars::{self, JsonSchema};
use serde::Deserialize;

/// The configuration.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// Where MemOS is: `https://memos.memtensor.cn/api/openmem/v1`, or the address that its console
    /// names.
    pub url: String,
    /// The user of the memories at MemOS; without it `memhost-` and the company.
    #[schemars(regex(pattern = r"^\S{1,100}$"))]
    pub user_id: Option<String>,
    /// The least relevance of a hit, 0 to 1; without it MemOS's own.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub threshold: Option<f64>,
    /// The price of adding, in millionths of a cent. MemOS reports no costs.
    pub add_microcents: Option<u64>,
    /// The price of a search, in millionths of a cent.
    pub search_microcents: Option<u64>,
}
