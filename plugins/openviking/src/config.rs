//! The binding's configuration.

use memhost_sdk::remote::Infer;
use memhost_sdk::schemars::{self, JsonSchema};
use serde::Deserialize;

/// The configuration.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// Where OpenViking is, such as `http://10.0.0.5:1933`.
    pub url: String,
    /// The material that its model extracts memories from.
    #[serde(default)]
    pub infer: Infer,
    /// The least score of a hit, 0 to 1; without it OpenViking's own.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub threshold: Option<f64>,
}
