//! What sessions and tools of any agent framework did, in one schema: the event contract of the
//! cross-agent memory core.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::bounds::{check_bytes, check_json_of};
use super::{AgentId, CompanyId, FieldError, JsonObject, Principal, limits};

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub enum EventType {
    #[serde(rename = "session.started")]
    SessionStarted,
    #[serde(rename = "session.stopped")]
    SessionStopped,
    #[serde(rename = "tool_call.started")]
    ToolCallStarted,
    #[serde(rename = "tool_call.succeeded")]
    ToolCallSucceeded,
    #[serde(rename = "tool_call.failed")]
    ToolCallFailed,
    #[serde(rename = "tool_call.ended")]
    ToolCallEnded,
    #[serde(rename = "memory.saved")]
    MemorySaved,
    #[serde(rename = "memory.recalled")]
    MemoryRecalled,
}

impl EventType {
    fn is_tool_call(self) -> bool {
        matches!(
            self,
            Self::ToolCallStarted
                | Self::ToolCallSucceeded
                | Self::ToolCallFailed
                | Self::ToolCallEnded
        )
    }
}

/// An event as it is sent. `projectId`, `sessionId` and `agentKind` are needed by all; `toolId` by
/// tool calls, `status` and `durationMs` once those have ended, `error` when they failed. A call of
/// which nobody knows how it ended is `tool_call.ended`, without a `status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs, reason = "the names are those of the event contract")]
pub struct NewEvent {
    /// The sender's own id: the same event twice under one id is one event. 1 to 128 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub event_id: Option<String>,
    pub r#type: EventType,
    #[schemars(with = "super::schema::OutsideId")]
    pub project_id: String,
    #[schemars(with = "super::schema::OutsideId")]
    pub session_id: String,
    /// Such as `claude-code` or `codex`.
    #[schemars(with = "super::schema::OutsideId")]
    pub agent_kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub run_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub tool_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = super::limits::MAX_EVENT_ERROR_BYTES))]
    pub error: Option<String>,
    /// When it happened; when it came in where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occurred_at: Option<Timestamp>,
    /// Free-form, at most 16 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = super::schema::event_details)]
    pub details: Option<JsonObject>,
}

impl NewEvent {
    /// The ids that its sender chose, each with its field.
    pub fn ids(&self) -> [(&'static str, Option<&str>); 7] {
        [
            ("eventId", self.event_id.as_deref()),
            ("projectId", Some(&self.project_id)),
            ("sessionId", Some(&self.session_id)),
            ("agentKind", Some(&self.agent_kind)),
            ("runId", self.run_id.as_deref()),
            ("toolId", self.tool_id.as_deref()),
            ("status", self.status.as_deref()),
        ]
    }

    /// Checks what the type needs.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Result<(), FieldError> {
        for (field, id) in self.ids() {
            if let Some(id) = id {
                super::check_id(field, id)?;
            }
        }
        let missing =
            |field: &str| Err(FieldError::new(field, "is missing; an event of this type needs it"));
        let has_status =
            matches!(self.r#type, EventType::ToolCallSucceeded | EventType::ToolCallFailed);
        let has_ended = has_status || self.r#type == EventType::ToolCallEnded;
        if self.r#type.is_tool_call() && self.tool_id.is_none() {
            return missing("toolId");
        }
        if has_status && self.status.is_none() {
            return missing("status");
        }
        if self.r#type == EventType::ToolCallEnded && self.status.is_some() {
            return Err(FieldError::new(
                "status",
                "is for a call of which is known how it ended; leave it out, or send \
                 `tool_call.succeeded` or `tool_call.failed`",
            ));
        }
        if has_ended && self.duration_ms.is_none() {
            return missing("durationMs");
        }
        if self.r#type == EventType::ToolCallFailed && self.error.is_none() {
            return missing("error");
        }
        if let Some(error) = &self.error {
            check_bytes("error", error, limits::MAX_EVENT_ERROR_BYTES)?;
        }
        check_json_of("details", self.details.as_ref(), limits::MAX_EVENT_DETAILS_BYTES)
    }
}

/// An event as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Orders events by when they came in.
    pub id: Uuid,
    /// The company.
    pub company_id: CompanyId,
    /// The principal that sent it.
    pub principal: Principal,
    /// When it came in.
    pub received_at: Timestamp,
    /// The event as it was sent.
    #[serde(flatten)]
    pub event: NewEvent,
}

/// Which events to show. Every field that is set must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the names are those of the event's fields")]
pub struct EventFilter {
    pub project_id: Option<String>,
    pub session_id: Option<String>,
    pub tool_id: Option<String>,
    pub r#type: Option<EventType>,
    pub agent_kind: Option<String>,
    /// Received at this moment or later.
    pub since: Option<Timestamp>,
    /// Received before this moment.
    pub until: Option<Timestamp>,
}

impl EventFilter {
    /// Whether an event matches.
    pub fn matches(&self, event: &Event) -> bool {
        let same = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        same(&self.project_id, Some(&event.event.project_id))
            && same(&self.session_id, Some(&event.event.session_id))
            && same(&self.tool_id, event.event.tool_id.as_deref())
            && same(&self.agent_kind, Some(&event.event.agent_kind))
            && self.r#type.is_none_or(|wanted| event.event.r#type == wanted)
            && self.since.is_none_or(|since| event.received_at >= since)
            && self.until.is_none_or(|until| event.received_at < until)
    }
}
