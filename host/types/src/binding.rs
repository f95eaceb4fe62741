//! Bindings: which provider answers for a company or an agent, and how.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AgentId, BindingId, BindingKey, BindingPolicy, CompanyId, Grants, JsonObject, Permission, ProviderKey,
    VersionChoice,
};

/// A company's configured provider. Selected by its key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Binding {
    /// Never reused.
    pub id: BindingId,
    /// The one company that it belongs to.
    pub company_id: CompanyId,
    /// Unique in the company.
    pub key: BindingKey,
    /// Which provider answers.
    pub provider_key: ProviderKey,
    /// Which of its versions.
    #[serde(default)]
    pub version: VersionChoice,
    /// The provider's configuration, as its `validate-config` accepted it.
    pub config: JsonObject,
    /// A disabled binding refuses every operation.
    pub enabled: bool,
    /// What the provider may reach.
    pub grants: Grants,
    /// What the provider asked for when somebody last decided about its grants. A version that asks for more waits for
    /// another decision.
    #[serde(default)]
    pub reviewed: Vec<Permission>,
    /// What the provider may use.
    pub limits: BindingLimits,
    /// What it does with what passes.
    #[serde(default)]
    pub policy: BindingPolicy,
    /// Counts changes, from 1.
    pub revision: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// What one binding's provider may use. Every limit has a default that protects its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct BindingLimits {
    /// Linear memory of one instance, all its memories together, in bytes.
    pub memory_bytes: u64,
    /// Elements of all tables of one instance.
    pub table_elements: u64,
    /// How long one call may take, in milliseconds of wall time, instantiation included.
    pub call_timeout_ms: u64,
    /// How long one call may compute, in milliseconds.
    pub call_cpu_ms: u64,
    /// How many calls may be at work at once; the provider's own `max-concurrency` also holds.
    pub concurrent_calls: u32,
    /// How many calls may wait for their turn; one more is refused.
    pub queued_calls: u32,
    /// How much a call may hand over in either direction, in bytes.
    pub transfer_bytes: u64,
    /// How much log of one call is kept, in bytes.
    pub log_bytes: u64,
    /// Keys that the private storage may hold.
    pub storage_keys: u64,
    /// Files, directories and links that the private directory may hold.
    pub directory_files: u64,
    /// Calls in a second, on average over a second; 0 for as many as there are.
    pub calls_per_second: u32,
    /// Outgoing requests of one call.
    pub outgoing_requests: u32,
    /// Outgoing requests in a minute.
    pub outgoing_requests_per_minute: u32,
    /// Outgoing requests at work at once.
    pub outgoing_connections: u32,
    /// What the requests of one call may send in their bodies, in bytes.
    pub outgoing_bytes: u64,
    /// What the responses of one call may bring in their bodies, in bytes.
    pub incoming_bytes: u64,
    /// Extraction jobs at work at once.
    pub concurrent_jobs: u32,
    /// How long a job may go on from its first call to its last, in milliseconds. One call has `callTimeoutMs`.
    pub job_timeout_ms: u64,
}

impl Default for BindingLimits {
    fn default() -> Self {
        Self {
            memory_bytes: 256 * 1024 * 1024,
            table_elements: 100_000,
            call_timeout_ms: 30_000,
            call_cpu_ms: 20_000,
            concurrent_calls: 4,
            queued_calls: 256,
            transfer_bytes: 32 * 1024 * 1024,
            log_bytes: 64 * 1024,
            storage_keys: 1_000_000,
            directory_files: 500_000,
            calls_per_second: 0,
            outgoing_requests: 64,
            outgoing_requests_per_minute: 1_000,
            outgoing_connections: 16,
            outgoing_bytes: 16 * 1024 * 1024,
            incoming_bytes: 16 * 1024 * 1024,
            concurrent_jobs: 1,
            job_timeout_ms: 3_600_000,
        }
    }
}

/// What a binding is resolved for. V1 of the plan has no target for a project.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "type", content = "id")]
pub enum Target {
    /// The company's default.
    Company,
    /// The override for one agent.
    Agent(AgentId),
}
