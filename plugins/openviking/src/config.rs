//! The binding's configuration.

use memhost_sdk::remote::Infer;
use serde::Deserialize;

/// What an operator sets.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// Where OpenViking is.
    pub url: String,
    /// What its model extracts memories from.
    #[serde(default)]
    pub infer: Infer,
    /// The least score of a hit, 0 to 1; without it OpenViking's own.
    pub threshold: Option<f64>,
}
