//! The binding's configuration.

use memhost_sdk::remote::Infer;
use memhost_sdk::schemars::{self, JsonSchema};
use serde::Deserialize;

/// The configuration.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// Where mem0 is: `https://api.mem0.ai`, or your server.
    pub url: String,
    /// Which of its two APIs is there.
    #[serde(default)]
    pub api: Api,
    /// The user of the memories at mem0; without it `memhost-` and the company.
    #[schemars(regex(pattern = r"^\S+$"))]
    pub user_id: Option<String>,
    /// Whether requests go without the secret `MEM0_API_KEY`.
    #[serde(default)]
    pub without_key: bool,
    /// The material that mem0's model extracts memories from.
    #[serde(default)]
    pub infer: Infer,
    /// The least score of a hit, 0 to 1; without it mem0's own.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub threshold: Option<f64>,
    /// The price of adding, in millionths of a cent. mem0 reports no costs.
    pub add_microcents: Option<u64>,
    /// The price of a search, in millionths of a cent.
    pub search_microcents: Option<u64>,
}

/// The two APIs of mem0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// `api.mem0.ai`.
    #[default]
    Hosted,
    /// The open-source server.
    SelfHosted,
}
