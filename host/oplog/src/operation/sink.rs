//! Events that parts above have an operation leave, written in one step with its completion.

use uuid::Uuid;

use memhost_types::{JsonObject, NewEvent, Operation, check_id};

/// What a request says of who asks, beside the principal and the scope of its operation.
#[derive(Debug, Clone, Default)]
pub struct OperationContext {
    /// The session that the metadata of an item name.
    pub session: Option<String>,
    /// The kind of agent that the metadata of an item name.
    pub agent_kind: Option<String>,
    /// The operation that the provider is told: that of the first attempt, where there were
    /// several.
    pub(super) told: Option<Uuid>,
}

impl OperationContext {
    /// Notes the session and the kind of agent that the metadata of an item name.
    pub(super) fn note(&mut self, metadata: Option<&JsonObject>) {
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
