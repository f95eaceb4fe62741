//! What requests and answers share: the handle of a record, and free-form JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ProviderKey, RecordId};

/// A free-form JSON object: the plan's `Record<string, unknown>`.
pub type JsonObject = serde_json::Map<String, Value>;

/// A record of a provider. The provider key is stamped by the host.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordHandle {
    /// The provider of the record.
    pub provider_key: ProviderKey,
    /// The provider's own name for it.
    pub provider_record_id: RecordId,
}

/// Calls `visit` with each text in a JSON value, and the name of the member that has it.
pub fn texts_in(name: &str, value: &mut Value, visit: &mut dyn FnMut(&str, &mut String)) {
    match value {
        Value::String(text) => visit(name, text),
        Value::Array(items) => items.iter_mut().for_each(|item| texts_in(name, item, visit)),
        Value::Object(members) => {
            members.iter_mut().for_each(|(name, member)| texts_in(name, member, visit));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
