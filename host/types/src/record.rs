//! What requests and answers share: the handle of a record, and free-form JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ProviderKey, RecordId};

/// A free-form JSON object: the plan's `Record<string, unknown>`.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;

/// A record of a provider. The provider key is stamped by the host.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordHandle {
    /// The provider of the record.
    pub provider_key: ProviderKey,
    /// The provider's own name for it.
    pub provider_record_id: RecordId,
}
