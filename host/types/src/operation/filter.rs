//! Which operations of the log are shown.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Operation, OperationKind, Outcome};
use crate::about::Wanted;
use crate::{BindingId, BindingKey, HookKind, ProviderKey, RecordHandle, RecordId, SourceKind};

/// Which operations to show. Every field that is set must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the names are those of the operation's fields")]
pub struct OperationFilter {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The issue of the scope or the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issue_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// The run of the scope, the source or the hook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook_kind: Option<HookKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_kind: Option<SourceKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<OperationKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<BindingKey>,
    /// Was answered by this binding. Another one may have had its key before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding_id: Option<BindingId>,
    /// Called this provider; with `providerRecordId`: names the record of this provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_key: Option<ProviderKey>,
    /// Names this record: wrote, returned or forgot it, or cites it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_record_id: Option<RecordId>,
    /// Began at this moment or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Began before this moment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Only those whose record has text of a request or of a guest, or had it. For the host itself.
    #[serde(skip)]
    pub keeps_text: bool,
}

impl OperationFilter {
    /// Whether an operation matches.
    pub fn matches(&self, operation: &Operation) -> bool {
        fn same<T: PartialEq + ?Sized>(wanted: Option<&T>, found: Option<&T>) -> bool {
            wanted.is_none_or(|wanted| found == Some(wanted))
        }
        let scope = &operation.scope;
        let wanted = Wanted {
            agent: self.agent_id.as_deref(),
            project: self.project_id.as_deref(),
            issue: self.issue_id.as_deref(),
            run: self.run_id.as_deref(),
        };
        operation.about().is(wanted)
            && same(self.session_key.as_ref(), scope.session_key.as_ref())
            && same(self.hook_kind.as_ref(), operation.hook.as_ref().map(|hook| &hook.hook_kind))
            && same(self.source_kind.as_ref(), operation.source.as_ref().map(|source| &source.kind))
            && same(self.kind.as_ref(), Some(&operation.kind))
            && same(self.outcome.as_ref(), Some(&operation.outcome))
            && same(self.binding_key.as_ref(), operation.binding_key.as_ref())
            && same(self.binding_id.as_ref(), operation.binding_id.as_ref())
            && self.matches_records(operation)
            && self.since.is_none_or(|since| operation.started_at >= since)
            && self.until.is_none_or(|until| operation.started_at < until)
            && (!self.keeps_text || operation.keeps_text())
    }

    fn matches_records(&self, operation: &Operation) -> bool {
        let key = self.provider_key.as_ref();
        let Some(id) = &self.provider_record_id else {
            return key.is_none() || key == operation.provider_key.as_ref();
        };
        let is_it = |handle: &RecordHandle| {
            handle.provider_record_id == *id && key.is_none_or(|key| handle.provider_key == *key)
        };
        operation.named().any(is_it)
    }
}
