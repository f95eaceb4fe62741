//! Events that parts above have an operation leave, written in one step with its completion.

use uuid::Uuid;

use super::OpenOperation;
use crate::events;
use memhost_store::TableWrite;
use memhost_types::{Event, JsonObject, NewEvent, Operation, OperationId, check_id};

/// What a request says of who asks, beside the principal and the scope of its operation.
#[derive(Debug, Clone, Default)]
pub struct OperationContext {
    /// The session that the metadata of an item name.
    pub session: Option<String>,
    /// The kind of agent that the metadata of an item name.
    pub agent_kind: Option<String>,
    /// The operation that the provider is told: that of the first attempt, where there were
    /// several.
    told: Option<Uuid>,
}

impl OperationContext {
    /// Notes the session and the kind of agent that the metadata of an item name.
    fn note(&mut self, metadata: Option<&JsonObject>) {
        let text = |name: &str| {
            let value = metadata?.get(name)?.as_str()?;
            check_id(name, value).ok().map(|()| value.to_owned())
        };
        self.session = self.session.take().or_else(|| text("sessionId"));
        self.agent_kind = self.agent_kind.take().or_else(|| text("agentKind"));
    }
}

/// Says which events an operation leaves.
pub trait OperationSink: Send + Sync {
    /// The events of an operation that has ended. They are written in one step with its
    /// completion, so each is there exactly once, or not at all.
    fn events(&self, operation: &Operation, context: &OperationContext) -> Vec<NewEvent>;
}

impl OpenOperation {
    /// Notes what the metadata of an item say of who asks.
    pub fn note_context(&mut self, metadata: Option<&JsonObject>) {
        self.context.note(metadata);
    }

    /// Notes the operation that the provider is told: the same for every attempt.
    pub fn set_told(&mut self, told: OperationId) {
        self.context.told = Some(told.uuid());
    }

    /// Adds the events that the sinks of the binding have of this operation.
    pub(super) fn add_events(&mut self) {
        let operation = &self.operation;
        let sinks = self.log.sinks.at(&operation.company_id, operation.binding_key.as_ref());
        if sinks.is_empty() {
            return;
        }
        let told = sinks.iter().flat_map(|sink| sink.events(operation, &self.context));
        let (first, now) =
            (self.context.told.unwrap_or_else(|| operation.id.uuid()), self.log.clock.now());
        let mut rows = Vec::new();
        for (event, number) in told.zip(0..) {
            let event = Event {
                // Another attempt of the same operation leaves the same events.
                id: Uuid::from_u128(first.as_u128().wrapping_add(number)),
                company_id: operation.company_id.clone(),
                principal: operation.principal.clone(),
                received_at: now,
                event,
            };
            match events::changes(&event) {
                Ok(changes) => rows.extend(
                    changes
                        .into_iter()
                        .map(|change| TableWrite::new(change.table, change.key, change.new)),
                ),
                Err(error) => tracing::error!(%error, "an operation's event could not be written"),
            }
        }
        self.beside.extend(rows);
    }
}
