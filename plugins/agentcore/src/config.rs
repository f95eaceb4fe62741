//! The binding's configuration.

use memhost_sdk::remote::Infer;
use memhost_sdk::schemars::{self, JsonSchema};
use serde::Deserialize;

/// What an operator sets.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// The endpoint of the region: `https://bedrock-agentcore.REGION.amazonaws.com`.
    pub url: String,
    /// The id or ARN of the memory resource.
    #[schemars(length(min = 12))]
    pub memory_id: String,
    /// What its strategies extract from.
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
    /// What it costs to add, in millionths of a cent. AgentCore tells no costs.
    pub add_microcents: Option<u64>,
    /// What it costs to search.
    pub search_microcents: Option<u64>,
}

fn ten_minutes() -> u64 {
    600
}
