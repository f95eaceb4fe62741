//! The binding's configuration.

use memhost_sdk::remote::Infer;
use memhost_sdk::schemars::{self, JsonSchema};
use serde::Deserialize;

/// The configuration.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// Where claude-mem's worker is, such as `http://127.0.0.1:37777`.
    pub url: String,
    /// The project of the observations; without it `memhost-` and the company.
    #[schemars(regex(pattern = r"^[^\s,][^,]*$"))]
    pub project: Option<String>,
    /// The material that claude-mem's model extracts observations from.
    #[serde(default)]
    pub infer: Infer,
    /// Whether the worker searches by meaning, with Chroma. Otherwise it finds phrases, and the
    /// provider asks for each word.
    #[serde(default)]
    pub semantic: bool,
}
