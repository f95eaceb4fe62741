//! An item, as it is stored and exported.

mod fields;
mod source;

pub(crate) use fields::{Facts, check, fill_residue, object};
pub(crate) use source::Source;

use memhost_sdk::types::{Scope, Snippet};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An item as it was written. Storage and exports have the same JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Item {
    /// Unique within the binding.
    pub(crate) id: String,
    /// The text.
    pub(crate) content: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<String>,
    /// Unchanged: type, agent kind, session, tags, visibility, confidence, source and other
    /// members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Map<String, Value>>,
    /// The scope in which it was written, without the company.
    #[serde(default)]
    pub(crate) scope: Place,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source_ref: Option<Source>,
    /// RFC 3339: when it was written first, and last.
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    /// RFC 3339: from when on it is in no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<String>,
    /// The operation that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) operation_id: Option<String>,
    /// The other parts of a captured payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mime_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) object: Option<Value>,
}

/// A scope without its company: an instance serves one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the contract's names")]
pub(crate) struct Place {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) actor_agent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) project_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) issue_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subject_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
}

impl From<&Scope> for Place {
    fn from(scope: &Scope) -> Self {
        let scope = scope.clone();
        Self {
            agent_id: scope.agent_id,
            actor_agent_id: scope.actor_agent_id,
            project_id: scope.project_id,
            issue_id: scope.issue_id,
            run_id: scope.run_id,
            subject_id: scope.subject_id,
            session_key: scope.session_key,
            namespace: scope.namespace,
        }
    }
}

impl Place {
    fn with_company(self, company: &str) -> Scope {
        Scope {
            agent_id: self.agent_id,
            actor_agent_id: self.actor_agent_id,
            issue_id: self.issue_id,
            run_id: self.run_id,
            subject_id: self.subject_id,
            session_key: self.session_key,
            namespace: self.namespace,
            project_id: self.project_id,
            ..Scope::company(company)
        }
    }
}

impl Item {
    /// Its project: that of the scope it was written in, else the one that its metadata names.
    pub(crate) fn project(&self) -> Option<&str> {
        self.scope
            .project_id
            .as_deref()
            .or_else(|| fields::text(self.metadata.as_ref()?, "projectId"))
    }

    /// The item as a snippet for a company.
    pub(crate) fn into_snippet(self, company: &str) -> Snippet {
        let project_id = self.project().map(str::to_owned);
        Snippet {
            scope: Some(Scope { project_id, ..self.scope.with_company(company) }),
            summary: self.summary,
            source: self.source_ref.map(|source| source.with_company(company)),
            metadata: self.metadata.map(|metadata| Value::Object(metadata).to_string()),
            created_at: Some(self.created_at),
            updated_at: Some(self.updated_at),
            expires_at: self.expires_at,
            ..Snippet::new(self.id, self.content)
        }
    }
}
