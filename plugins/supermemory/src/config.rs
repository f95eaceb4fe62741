//! The binding's configuration.

use memhost_sdk::remote::Infer;
use memhost_sdk::schemars::{self, JsonSchema};
use serde::Deserialize;

/// The configuration.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// Where supermemory is: `https://api.supermemory.ai`, or your server.
    pub url: String,
    /// The container of the memories; without it `memhost-` and the company.
    #[schemars(regex(pattern = r"^[a-zA-Z0-9_-]{1,100}$"))]
    pub container_tag: Option<String>,
    /// The material that supermemory extracts memories from.
    #[serde(default)]
    pub extract: Infer,
    /// The least similarity of a hit, 0 to 1; without it supermemory's own.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub threshold: Option<f64>,
    /// The price of adding, in millionths of a cent. supermemory reports no costs.
    pub add_microcents: Option<u64>,
    /// The price of a search, in millionths of a cent.
    pub search_microcents: Option<u64>,
}
