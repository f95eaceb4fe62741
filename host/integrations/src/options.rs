//! How the routes of other systems are mapped to a company's memory.

use serde::{Deserialize, Serialize};

use memhost_types::{BindingKey, CompanyId, Scope};

/// Which of those systems' routes there are: none unless somebody says so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IntegrationOptions {
    /// PageSpace's `/api/memory/…`.
    pub pagespace: Option<PageSpaceOptions>,
    /// Apropos' `/api/projects/{projectId}/memory…`.
    pub apropos: Option<AproposOptions>,
}

/// PageSpace: facts about a user, and facts of a drive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageSpaceOptions {
    /// Whose memory.
    pub company: CompanyId,
    /// The binding; absent: the one that is active for the scope.
    #[serde(default)]
    pub binding: Option<BindingKey>,
    /// The field of the scope that holds a user's id.
    #[serde(default = "subject")]
    pub user: ScopeField,
    /// The field of the scope that holds a drive's id.
    #[serde(default = "namespace")]
    pub drive: ScopeField,
    /// The header that says for which user a call is, since the address does not. An agent's token is for its own agent
    /// only, whatever the header says.
    #[serde(default = "user_header")]
    pub user_header: String,
}

/// Apropos: the items of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AproposOptions {
    /// Whose memory.
    pub company: CompanyId,
    /// The binding; absent: the one that is active for the scope.
    #[serde(default)]
    pub binding: Option<BindingKey>,
    /// The field of the scope that holds a project's id.
    #[serde(default = "project")]
    pub project: ScopeField,
}

/// A field of a scope that an id of another system can be put into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScopeField {
    /// `subjectId`; it partitions.
    SubjectId,
    /// `namespace`; it partitions.
    Namespace,
    /// `projectId`, context.
    ProjectId,
    /// `sessionKey`, context.
    SessionKey,
}

impl ScopeField {
    /// Puts an id where it belongs.
    pub fn set(self, scope: &mut Scope, id: &str) {
        let field = match self {
            Self::SubjectId => &mut scope.subject_id,
            Self::Namespace => &mut scope.namespace,
            Self::ProjectId => &mut scope.project_id,
            Self::SessionKey => &mut scope.session_key,
        };
        *field = Some(id.to_owned());
    }
}

fn subject() -> ScopeField {
    ScopeField::SubjectId
}

fn namespace() -> ScopeField {
    ScopeField::Namespace
}

fn project() -> ScopeField {
    ScopeField::ProjectId
}

fn user_header() -> String {
    "x-user-id".to_owned()
}
