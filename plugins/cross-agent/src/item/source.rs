//! The source of an item, with the plan's field names.

use memhost_sdk::types::{SourceKind, SourceRef};
use serde::{Deserialize, Serialize};

/// A source without its company, so that an export can move to another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Source {
    /// The plan's name.
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    issue_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    comment_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    document_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    activity_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    external_ref: Option<String>,
}

impl From<SourceRef> for Source {
    fn from(source: SourceRef) -> Self {
        Self {
            kind: source.kind.name().to_owned(),
            issue_id: source.issue_id,
            comment_id: source.comment_id,
            document_key: source.document_key,
            run_id: source.run_id,
            activity_id: source.activity_id,
            external_ref: source.external_ref,
        }
    }
}

impl Source {
    /// The source as the contract's type.
    pub(crate) fn with_company(self, company: &str) -> SourceRef {
        SourceRef {
            kind: SourceKind::of_name(&self.kind),
            company_id: company.to_owned(),
            issue_id: self.issue_id,
            comment_id: self.comment_id,
            document_key: self.document_key,
            run_id: self.run_id,
            activity_id: self.activity_id,
            external_ref: self.external_ref,
        }
    }
}
