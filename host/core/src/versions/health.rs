//! What is known of the system behind a provider.

use jiff::Timestamp;
use memhost_types::OperationError;
use schemars::JsonSchema;
use serde::Serialize;

/// What a provider last said of the system behind it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthFound {
    /// When it was asked.
    pub at: Timestamp,
    /// What it found, in one sentence; absent where it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Why it failed; absent where it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<OperationError>,
}
