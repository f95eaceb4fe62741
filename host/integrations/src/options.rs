//! How the routes of other systems are mapped to a company's memory.

use serde::{Deserialize, Serialize};

use memhost_core::Section;
use memhost_types::{BindingKey, CompanyId, Scope};

/// The integrations of a host. None is active without a section in the configuration.
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
    /// The company whose memory the routes use.
    pub company: CompanyId,
    /// The binding. Where absent, the active binding of the scope.
    #[serde(default)]
    pub binding: Option<BindingKey>,
    /// The field of the scope that holds a user's id.
    #[serde(default = "subject")]
    pub user: ScopeField,
    /// The field of the scope that holds a drive's id.
    #[serde(default = "namespace")]
    pub drive: ScopeField,
    /// The header with the user's id, which the address does not have. An agent's token always
    /// means its own agent.
    #[serde(default = "user_header")]
    pub user_header: String,
    /// Whether an agent's token may name users other than its own agent on the runtime plane and
    /// over MCP.
    #[serde(default)]
    pub agents_name_users: bool,
    /// Which facts of a drive agents and members may correct and remove with tools and on the
    /// runtime plane.
    #[serde(default)]
    pub agents_change_drive_facts: ChangeableFacts,
}

/// Shared facts that whoever is no administrator may correct and remove: those of a drive, and of
/// the company.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeableFacts {
    /// None.
    None,
    /// Those that a model saved: not those that an administrator added or corrected.
    #[default]
    SavedByAi,
    /// All.
    All,
}

/// Apropos: the items of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AproposOptions {
    /// The company whose memory the routes use.
    pub company: CompanyId,
    /// The binding. Where absent, the active binding of the scope.
    #[serde(default)]
    pub binding: Option<BindingKey>,
    /// The field of the scope that holds a project's id.
    #[serde(default = "project")]
    pub project: ScopeField,
}

impl IntegrationOptions {
    /// The company whose memory the routes at a path use.
    pub fn company_of(&self, path: &str) -> Option<&CompanyId> {
        if path.starts_with("/api/memory/") {
            return self.pagespace.as_ref().map(|options| &options.company);
        }
        path.starts_with("/api/projects/")
            .then_some(self.apropos.as_ref())?
            .map(|options| &options.company)
    }
}

impl PageSpaceOptions {
    /// The binding that has the facts.
    pub(crate) fn section(&self) -> Section {
        let (company, binding) = (self.company.clone(), self.binding.clone());
        Section { name: "integrations.pagespace", company, binding }
    }
}

impl AproposOptions {
    /// The binding that has the projects' items.
    pub(crate) fn section(&self) -> Section {
        let (company, binding) = (self.company.clone(), self.binding.clone());
        Section { name: "integrations.apropos", company, binding }
    }
}

/// The field of a scope that holds an id of another system.
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
    /// The id that a scope has in the field.
    pub(crate) fn get(self, scope: &Scope) -> Option<&str> {
        let field = match self {
            Self::SubjectId => &scope.subject_id,
            Self::Namespace => &scope.namespace,
            Self::ProjectId => &scope.project_id,
            Self::SessionKey => &scope.session_key,
        };
        field.as_deref()
    }

    /// What a request calls the field.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::SubjectId => "scope.subjectId",
            Self::Namespace => "scope.namespace",
            Self::ProjectId => "scope.projectId",
            Self::SessionKey => "scope.sessionKey",
        }
    }

    /// Sets the field of a scope to an id.
    pub fn set(self, scope: &mut Scope, id: &str) {
        *self.of(scope) = Some(id.to_owned());
    }

    /// Clears the field of a scope.
    pub(crate) fn clear(self, scope: &mut Scope) {
        *self.of(scope) = None;
    }

    fn of(self, scope: &mut Scope) -> &mut Option<String> {
        match self {
            Self::SubjectId => &mut scope.subject_id,
            Self::Namespace => &mut scope.namespace,
            Self::ProjectId => &mut scope.project_id,
            Self::SessionKey => &mut scope.session_key,
        }
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
