//! What operations have in common where no filter and no sum can tell them apart.

use super::{Operation, OperationKind, Outcome};
use crate::{
    AgentId, BindingId, BindingKey, HookKind, ProviderKey, RecordHandle, Rollup, RollupKey,
    SourceKind,
};

/// Everything of an operation that a filter or a sum looks at, but for the moment of its day at
/// which it began. Whoever adds a filter or a column of the sums adds it here, too: operations that
/// share an entry of the log must be the same in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are those of the operation's fields")]
pub struct Alike {
    pub kind: OperationKind,
    pub outcome: Outcome,
    pub agent_id: Option<AgentId>,
    pub project_id: Option<String>,
    pub issues: Vec<String>,
    pub runs: Vec<String>,
    pub session_key: Option<String>,
    pub hook_kind: Option<HookKind>,
    pub source_kind: Option<SourceKind>,
    pub binding_key: Option<BindingKey>,
    pub binding_id: Option<BindingId>,
    pub provider_key: Option<ProviderKey>,
    /// The records that it names.
    pub named: Vec<RecordHandle>,
    pub keeps_text: bool,
    /// The rows of sums that it is in.
    pub sums: Vec<RollupKey>,
}

impl Alike {
    /// What this operation has of it.
    pub fn of(operation: &Operation) -> Self {
        let about = operation.about();
        Self {
            kind: operation.kind,
            outcome: operation.outcome,
            agent_id: about.agent().cloned(),
            project_id: about.project().map(str::to_owned),
            issues: about.issues().map(str::to_owned).collect(),
            runs: about.runs().map(str::to_owned).collect(),
            session_key: operation.scope.session_key.clone(),
            hook_kind: operation.hook.as_ref().map(|hook| hook.hook_kind.clone()),
            source_kind: operation.source.as_ref().map(|source| source.kind),
            binding_key: operation.binding_key.clone(),
            binding_id: operation.binding_id,
            provider_key: operation.provider_key.clone(),
            named: operation.named().cloned().collect(),
            keeps_text: operation.keeps_text(),
            sums: Rollup::of(operation).into_iter().map(|(key, _)| key).collect(),
        }
    }

    /// What all operations of this kind and this outcome have of it.
    #[must_use]
    pub fn any(kind: OperationKind, outcome: Outcome) -> Self {
        Self {
            kind,
            outcome,
            agent_id: None,
            project_id: None,
            issues: Vec::new(),
            runs: Vec::new(),
            session_key: None,
            hook_kind: None,
            source_kind: None,
            binding_key: None,
            binding_id: None,
            provider_key: None,
            named: Vec::new(),
            keeps_text: false,
            sums: Vec::new(),
        }
    }
}
