//! The binding's configuration.

use memhost_sdk::remote::Infer;
use memhost_sdk::schemars::{self, JsonSchema};
use serde::Deserialize;

/// The configuration.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// The endpoint of the region: `https://bedrock-agentcore.REGION.amazonaws.com`.
    pub url: String,
    /// The id or ARN of the memory resource.
    #[schemars(length(min = 12))]
    pub memory_id: String,
    /// The material that its strategies extract from.
    #[serde(default)]
    pub extract: Infer,
    /// The metadata keys, beside `memhost_key`, that the memory resource indexes.
    #[serde(default)]
    #[schemars(length(max = 6), inner(regex(pattern = r"^[a-zA-Z0-9_-]{1,128}$")))]
    pub indexed: Vec<String>,
    /// How long a strategy's records are waited for before a capture counts as done without any, in
    /// seconds.
    #[serde(default = "ten_minutes")]
    #[schemars(range(max = 3600))]
    pub settle_seconds: u64,
    /// The price of adding, in millionths of a cent. AgentCore reports no costs.
    pub add_microcents: Option<u64>,
    /// The price of a search, in millionths of a cent.
    pub search_microcents: Option<u64>,
}

fn ten_minutes() -> u64 {
    600
}
