//! Bindings: which provider answers for a company or an agent, and how.

mod limits;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AgentId, BindingId, BindingKey, BindingPolicy, CompanyId, Grants, JsonObject, Permission,
    ProviderKey, VersionChoice,
};

pub use self::limits::{BindingLimits, Limit, LimitUnit};

/// A company's configured provider. Selected by its key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Binding {
    /// Never reused. Its records, its storage and what waits for it have this id.
    pub id: BindingId,
    /// Where a restore put it in the place of another one: that one's id, which its operations,
    /// costs, budgets and deliveries keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub goes_on_as: Option<BindingId>,
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
    /// The provider's grants.
    pub grants: Grants,
    /// What the provider asked for when its grants were last decided about. A version that asks for
    /// more waits for another decision.
    #[serde(default)]
    pub reviewed: Vec<Permission>,
    /// The provider's limits.
    pub limits: BindingLimits,
    /// Its rules for the data that passes.
    #[serde(default)]
    pub policy: BindingPolicy,
    /// Grants and limits that an import requests, until an operator decides about them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<RequestedGrants>,
    /// Counts changes, from 1.
    pub revision: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl Binding {
    /// The revision of a binding that is not stored.
    pub const IMPLIED: u64 = 0;

    /// The id that operations, costs, budgets and deliveries know it by, and everybody outside.
    pub fn known_as(&self) -> BindingId {
        self.goes_on_as.unwrap_or(self.id)
    }

    /// Whether it answers because nobody has decided who does, and is not stored.
    pub fn is_implied(&self) -> bool {
        self.revision == Self::IMPLIED
    }
}

/// Grants and limits that an import requests: those the binding had on its former host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestedGrants {
    /// The provider's grants.
    pub grants: Grants,
    /// The provider's limits.
    pub limits: BindingLimits,
}

/// The target that a binding is resolved for. V1 of the plan has no target for a project.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "type", content = "id")]
pub enum Target {
    /// The company's default.
    Company,
    /// The override for one agent.
    Agent(AgentId),
}
