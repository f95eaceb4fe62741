//! Sessions of claude-mem as events: one for the start and, if known, one for the end. An event has
//! the same id in every import, so the host records it once.

use serde_json::{Value, json};

use super::row::{Sessions, agent_kind, hash, project_of, session_id, text, time};
use crate::CliError;
use crate::args::ScopeArgs;
use crate::session::Session;

/// Events of one request; the host takes 1,000.
const BATCH: usize = 500;

/// Sends the events of all sessions, and answers how many.
pub(super) async fn send(
    session: &Session,
    scope: &ScopeArgs,
    sessions: &Sessions,
) -> Result<usize, CliError> {
    let mut events = Vec::new();
    for (memory_id, row) in sessions {
        let project = scope.project.clone().unwrap_or_else(|| project_of(row));
        for (kind, column) in
            [("session.started", "started_at_epoch"), ("session.stopped", "completed_at_epoch")]
        {
            let Some(at) = time(row, column) else { continue };
            let mut event = json!({
                "eventId": format!("claude-mem-{kind}-{}", hash(&[memory_id])),
                "type": kind,
                "projectId": project,
                "sessionId": session_id(row),
                "agentKind": agent_kind(row),
                "occurredAt": at,
                "details": {"importedFrom": "claude-mem", "title": text(row, "custom_title")},
            });
            for (name, value) in [("agentId", &session.agent), ("runId", &scope.run)] {
                if let Some(value) = value {
                    event[name] = Value::from(value.as_str());
                }
            }
            events.push(event);
        }
    }
    for batch in events.chunks(BATCH) {
        session.host.post(&session.runtime("events"), &json!({"events": batch})).await?;
    }
    Ok(events.len())
}
