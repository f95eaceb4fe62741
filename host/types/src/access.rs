//! Tokens as they are shown.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Act, AgentId, CompanyId, Principal, Role};

/// A token's identity. It is in no secret and in every listing.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct TokenId(pub Uuid);

/// A token without its value, which is shown only once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Token {
    /// Never reused; stays when the token is rotated.
    pub id: TokenId,
    /// Its name, such as `paperclip`.
    pub name: String,
    /// The role of its bearer.
    pub role: Role,
    /// Its company; absent for an operator and a monitor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub company_id: Option<CompanyId>,
    /// Which agent its bearer is; for agents only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The only run that its bearer may act in; for agents only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The permissions that limit it, on both planes; absent: those of its role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<Act>>,
    /// From when on it is good for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// The principal that made it.
    pub created_by: Principal,
    /// When it last got a new value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_at: Option<Timestamp>,
    /// Until when the value before the last rotation works, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_value_until: Option<Timestamp>,
    /// The beginning of the hour in which it was last used, so it can be before the token was made;
    /// absent where it never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
    /// When it was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

impl Principal {
    /// The bearer of a token.
    pub fn of(token: &Token) -> Self {
        match &token.agent_id {
            Some(agent) => Self::Agent(agent.clone()),
            None => Self::Token { role: token.role, name: token.name.clone() },
        }
    }
}

/// Whose a value is.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FoundToken {
    /// The token; absent where none that the caller may list has this value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// Why the value does not work any more, such as `was revoked`; absent where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// A token that was just made, with its value, this once.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewToken {
    /// The token as it is stored.
    #[serde(flatten)]
    pub token: Token,
    /// The value that its bearer sends as `authorization: Bearer …`.
    pub value: String,
}
