//! What a provider says of itself, what it asks for, and what a binding grants it.

use serde::{Deserialize, Serialize};

use super::ProviderKey;

/// What a provider's `describe` answered, checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderDescription {
    /// Stable across versions; the first half of every handle.
    pub provider_key: ProviderKey,
    /// For people.
    pub name: String,
    /// Semantic version.
    pub version: String,
    /// For people, one sentence.
    pub summary: String,
    /// JSON Schema of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<serde_json::Value>,
    /// The plan's capability flags. Those that an exported interface proves are set by the host.
    pub capabilities: ProviderCapabilities,
    /// How many instances may serve one binding at once, from 1.
    pub max_concurrency: u32,
    /// What it asks for.
    pub permissions: Vec<PermissionRequest>,
}

/// The plan's `MemoryAdapterCapabilities`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderCapabilities {
    /// Exports `profile`.
    pub profile: bool,
    /// Exports `correction`.
    pub correction: bool,
    /// Takes payloads that are not text.
    pub multimodal: bool,
    /// Makes its own records out of what is captured.
    pub provider_managed_extraction: bool,
    /// Answers captures with jobs.
    pub async_extraction: bool,
    /// Exports `browse`.
    pub provider_native_browse: bool,
}

/// Something outside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "detail")]
pub enum Permission {
    /// The `storage` import, with this many bytes in total.
    Storage(u64),
    /// A private directory, with this many bytes in total.
    Directory(u64),
    /// The `embeddings` import.
    Embeddings,
    /// Outgoing HTTP to one origin.
    Http(HttpPermission),
    /// A secret of this name.
    Secret(String),
}

/// Outgoing HTTP to one origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpPermission {
    /// Scheme, host and optional port.
    pub origin: String,
    /// Empty: all methods.
    pub methods: Vec<String>,
}

/// What a provider asks for, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequest {
    /// What.
    pub permission: Permission,
    /// Why, for the person who decides.
    pub reason: String,
    /// Whether it also works without.
    pub optional: bool,
}

/// What one binding's provider may reach. The default is nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Grants {
    /// Bytes of storage; 0: the import is denied.
    pub storage_bytes: u64,
    /// Bytes of the private directory; 0: there is none.
    pub directory_bytes: u64,
    /// Whether texts may be embedded.
    pub embeddings: bool,
}

impl Grants {
    /// Exactly what is asked for.
    pub fn all_of(requests: &[PermissionRequest]) -> Self {
        let mut grants = Self::default();
        for request in requests {
            match request.permission {
                Permission::Storage(bytes) => grants.storage_bytes = grants.storage_bytes.max(bytes),
                Permission::Directory(bytes) => grants.directory_bytes = grants.directory_bytes.max(bytes),
                Permission::Embeddings => grants.embeddings = true,
                // This version of the host has no outgoing network and no secrets to grant.
                Permission::Http(_) | Permission::Secret(_) => {}
            }
        }
        grants
    }
}
