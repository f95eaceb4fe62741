//! The activity log: what was changed about a company's memory, by whom, and what it was before.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{CompanyId, Principal};

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActivityAction {
    /// A binding was made.
    BindingCreated,
    /// A binding's configuration, limits, state or choice of versions was changed.
    BindingChanged,
    /// The grants of a binding were changed.
    GrantsChanged,
    /// The company or an agent was pointed at a binding, or no longer is.
    TargetChanged,
    /// Another version serves a binding.
    VersionSwitched,
    /// A version was tried and is kept from a binding.
    VersionRejected,
    /// A binding's circuit breaker was closed by hand, and versions kept from it may be tried
    /// again.
    BindingReset,
    /// A secret was set. Its value is in no log.
    SecretSet,
    /// A secret was removed.
    SecretRemoved,
    /// A binding was deleted, with what its provider had stored through the host.
    BindingDeleted,
    /// A token was made.
    TokenCreated,
    /// A token got a new value; the old one is no longer valid.
    TokenRotated,
    /// A token was taken back.
    TokenRevoked,
    /// A budget was set or removed.
    BudgetChanged,
    /// How long is kept what a company has was changed.
    RetentionChanged,
    /// A person decided about an item of the review queue.
    ReviewDecided,
    /// A job was cancelled or queued again by hand.
    JobChanged,
    /// A dead delivery was queued again by hand.
    DeliveryReplayed,
    /// A delivery was discarded by hand.
    DeliveryDiscarded,
    /// A flat charge was entered.
    FinanceEventAdded,
    /// A company was imported from another host.
    CompanyImported,
    /// The records of a company's bindings were restored from an export.
    CompanyRestored,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Activity {
    /// Ordered by time.
    pub id: Uuid,
    /// The company.
    pub company_id: CompanyId,
    /// When.
    pub at: Timestamp,
    /// The principal, as in operations; `host` for the host's own changes.
    pub principal: Principal,
    /// The kind of change.
    pub action: ActivityAction,
    /// To which thing: a binding's key, or what a target or secret is called.
    pub subject: String,
    /// How it was. Secrets are never in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// How it is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// One page of changes, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActivityPage {
    /// At most as many as asked for.
    pub items: Vec<Activity>,
    /// Pass it on to get the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
