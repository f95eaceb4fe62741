//! Events that the host itself leaves of a project's memory: what was saved and what was recalled,
//! whichever way it came. An event is written in one step with the record of its operation, so each
//! has exactly one.

use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use crate::Service;
use crate::companies::events::index_of;
use memhost_store::{self as store, StoreError, Table, TableWrite};
use memhost_types::{
    BindingKey, CompanyId, Event, EventType, JsonObject, NewEvent, Operation, OperationKind,
    Outcome, Scope, SourceRef, check_id,
};

/// The most bytes of ids in an event. `count` says how many there are; the operation's record has
/// all of them.
const MAX_ID_BYTES: usize = 8 << 10;

/// Whose projects have events of their memory.
#[derive(Debug, Clone)]
pub struct ProjectEvents {
    /// The company.
    pub company: CompanyId,
    /// The binding that has the projects' items. Where absent, any.
    pub binding: Option<BindingKey>,
    /// The id of the project in a scope.
    pub project: fn(&Scope) -> Option<&str>,
}

/// What a request says of who asks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Teller {
    session: Option<String>,
    agent_kind: Option<String>,
    /// The operation that the provider is told: that of the first attempt, where there were
    /// several.
    pub(crate) told: Option<Uuid>,
}

impl Teller {
    /// Notes the session and the kind of agent that the metadata of an item name.
    pub(crate) fn note(&mut self, metadata: Option<&JsonObject>) {
        let text = |name: &str| {
            let value = metadata?.get(name)?.as_str()?;
            check_id(name, value).ok().map(|()| value.to_owned())
        };
        self.session = self.session.take().or_else(|| text("sessionId"));
        self.agent_kind = self.agent_kind.take().or_else(|| text("agentKind"));
    }
}

impl ProjectEvents {
    /// The rows of the event of an operation that has ended; none where it leaves no event.
    pub(crate) fn rows(
        &self,
        operation: &Operation,
        teller: &Teller,
        now: Timestamp,
    ) -> Result<Vec<TableWrite>, StoreError> {
        let Some(event) = self.event(operation, teller, now) else { return Ok(Vec::new()) };
        let key = store::newest_first(&event.company_id, event.id);
        let mut rows =
            vec![TableWrite::new(Table::Events, key, Some(store::encode("event", &event)?))];
        rows.extend(
            index_of(&event)?
                .into_iter()
                .map(|change| TableWrite::new(change.table, change.key, change.new)),
        );
        Ok(rows)
    }

    fn event(&self, operation: &Operation, teller: &Teller, now: Timestamp) -> Option<Event> {
        let is_of_binding = self.binding.is_none() || self.binding == operation.binding_key;
        if operation.company_id != self.company
            || !is_of_binding
            || operation.outcome != Outcome::Succeeded
        {
            return None;
        }
        let project = (self.project)(&operation.scope)?;
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
        Some(Event {
            id: teller.told.unwrap_or_else(|| operation.id.uuid()),
            company_id: operation.company_id.clone(),
            principal: operation.principal.clone(),
            received_at: now,
            event: NewEvent {
                event_id: None,
                r#type: kind,
                project_id: project.to_owned(),
                session_id: or(teller.session.as_deref().or(scope.session_key.as_deref()), "none"),
                agent_kind: or(teller.agent_kind.as_deref().or(named), "unknown"),
                agent_id: scope.agent_id.clone().or_else(|| scope.actor_agent_id.clone()),
                run_id: scope.run_id.clone(),
                tool_id: None,
                status: None,
                duration_ms: None,
                error: None,
                occurred_at: None,
                details: details.as_object().cloned(),
            },
        })
    }
}

impl Service {
    /// From here on the projects of a company have events of their memory.
    pub fn tell_of_projects(&self, projects: ProjectEvents) {
        *self.recorder.projects.write() = Some(projects);
    }
}
