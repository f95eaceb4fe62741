//! Events of a project's memory: what was saved and what was recalled, whichever way it came. An
//! event is written in one step with the completion of its operation, so each has exactly one.

use serde_json::json;

use super::options::AproposOptions;
use memhost_core::{OperationContext, OperationSink};
use memhost_types::{EventType, NewEvent, Operation, OperationKind, Outcome, SourceRef};

/// The most bytes of ids in an event. `count` says how many there are; the operation's record has
/// all of them.
const MAX_ID_BYTES: usize = 8 << 10;

impl OperationSink for AproposOptions {
    fn events(&self, operation: &Operation, context: &OperationContext) -> Vec<NewEvent> {
        self.event(operation, context).into_iter().collect()
    }
}

impl AproposOptions {
    fn event(&self, operation: &Operation, context: &OperationContext) -> Option<NewEvent> {
        if operation.outcome != Outcome::Succeeded {
            return None;
        }
        let project = self.project.get(&operation.scope)?;
        let is_of_client = operation.source.as_ref().is_some_and(SourceRef::is_of_client);
        let kind = match operation.kind {
            OperationKind::Capture
            | OperationKind::RecordUpsert
            | OperationKind::Correct
            | OperationKind::Import
            | OperationKind::Extraction
                if !operation.records.is_empty() =>
            {
                EventType::MemorySaved
            }
            // What a run, or an agent by a tool, gets. A search of a person is none.
            OperationKind::Query
                if !operation.records.is_empty() && (operation.hook.is_some() || is_of_client) =>
            {
                EventType::MemoryRecalled
            }
            _ => return None,
        };
        let scope = &operation.scope;
        let named = operation.source.as_ref().and_then(SourceRef::client);
        let or = |value: Option<&str>, other: &str| value.unwrap_or(other).to_owned();
        let mut bytes = 0;
        let ids = operation.records.iter().map(|handle| handle.provider_record_id.as_str());
        let ids: Vec<&str> = ids
            .take_while(|id| {
                bytes += id.len();
                bytes <= MAX_ID_BYTES
            })
            .collect();
        let details =
            json!({"operationId": operation.id, "ids": ids, "count": operation.record_count});
        Some(NewEvent {
            event_id: None,
            r#type: kind,
            project_id: project.to_owned(),
            session_id: or(context.session.as_deref().or(scope.session_key.as_deref()), "none"),
            agent_kind: or(context.agent_kind.as_deref().or(named), "unknown"),
            agent_id: scope.agent_id.clone().or_else(|| scope.actor_agent_id.clone()),
            run_id: scope.run_id.clone(),
            tool_id: None,
            status: None,
            duration_ms: None,
            error: None,
            occurred_at: None,
            details: details.as_object().cloned(),
        })
    }
}
