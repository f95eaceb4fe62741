//! The scope and the source of an item, as they are stored.

use memhost_sdk::types::{HookKind, Scope, SourceKind, SourceRef};
use serde::{Deserialize, Serialize};

/// The stored parts of a scope.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Place {
    pub(crate) agent: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) project: Option<String>,
}

impl From<&Scope> for Place {
    fn from(scope: &Scope) -> Self {
        Self {
            agent: scope.agent_id.clone(),
            subject: scope.subject_id.clone(),
            namespace: scope.namespace.clone(),
            project: scope.project_id.clone(),
        }
    }
}

impl Place {
    /// Whether a scope may see what is in this place, by the contract's partitions.
    pub(crate) fn is_visible(&self, scope: &Scope) -> bool {
        let fits = |own: &Option<String>, of_scope: &Option<String>| {
            own.is_none() || of_scope.is_none() || own == of_scope
        };
        fits(&self.agent, &scope.agent_id)
            && fits(&self.subject, &scope.subject_id)
            && fits(&self.namespace, &scope.namespace)
    }
}

/// A source, as it is stored. The company is the binding's and is added when the source is
/// returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Source {
    kind: String,
    issue: Option<String>,
    comment: Option<String>,
    document: Option<String>,
    run: Option<String>,
    activity: Option<String>,
    external: Option<String>,
}

impl From<&SourceRef> for Source {
    fn from(source: &SourceRef) -> Self {
        Self {
            kind: source.kind.name().to_owned(),
            issue: source.issue_id.clone(),
            comment: source.comment_id.clone(),
            document: source.document_key.clone(),
            run: source.run_id.clone(),
            activity: source.activity_id.clone(),
            external: source.external_ref.clone(),
        }
    }
}

impl Source {
    pub(crate) fn shown(&self, company: &str) -> SourceRef {
        SourceRef {
            kind: SourceKind::of_name(&self.kind),
            company_id: company.to_owned(),
            issue_id: self.issue.clone(),
            comment_id: self.comment.clone(),
            document_key: self.document.clone(),
            run_id: self.run.clone(),
            activity_id: self.activity.clone(),
            external_ref: self.external.clone(),
        }
    }
}

/// The kind of a hook, as it is stored.
pub(crate) fn hook_name(kind: &HookKind) -> String {
    match kind {
        HookKind::PreRunHydrate => "pre_run_hydrate",
        HookKind::PostRunCapture => "post_run_capture",
        HookKind::IssueCommentCapture => "issue_comment_capture",
        HookKind::IssueDocumentCapture => "issue_document_capture",
        HookKind::ManualCapture => "manual_capture",
        HookKind::Other(name) => name,
    }
    .to_owned()
}

/// The inverse of [`hook_name`].
pub(crate) fn hook_kind(name: &str) -> HookKind {
    match name {
        "pre_run_hydrate" => HookKind::PreRunHydrate,
        "post_run_capture" => HookKind::PostRunCapture,
        "issue_comment_capture" => HookKind::IssueCommentCapture,
        "issue_document_capture" => HookKind::IssueDocumentCapture,
        "manual_capture" => HookKind::ManualCapture,
        other => HookKind::Other(other.to_owned()),
    }
}
