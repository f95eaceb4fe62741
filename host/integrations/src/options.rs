//! How the routes of other systems are mapped to a company's memory.

use serde::{Deserialize, Serialize};

use memhost_core::{DriveFacts, FactOwners, ProjectEvents};
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
    pub agents_change_drive_facts: DriveFacts,
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

impl PageSpaceOptions {
    /// Whose facts the metrics count.
    pub(crate) fn owners(&self) -> FactOwners {
        let (company, binding) = (self.company.clone(), self.binding.clone());
        FactOwners {
            company,
            binding,
            user_field: self.user.name(),
            user: self.user.reader(),
            set_user: self.user.setter(),
            drive: self.drive.reader(),
            clear_drive: self.drive.clearer(),
            clear_others: match self.drive {
                ScopeField::Namespace if self.user != ScopeField::ProjectId => {
                    ScopeField::ProjectId.clearer()
                }
                ScopeField::ProjectId if self.user != ScopeField::Namespace => {
                    ScopeField::Namespace.clearer()
                }
                _ => |_| {},
            },
            agents_name_users: self.agents_name_users,
            agents_change: self.agents_change_drive_facts,
        }
    }
}

impl AproposOptions {
    /// Whose projects have events of their memory.
    pub(crate) fn events(&self) -> ProjectEvents {
        let (company, binding) = (self.company.clone(), self.binding.clone());
        ProjectEvents { company, binding, project: self.project.reader() }
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
        self.reader()(scope)
    }

    /// What a request calls the field.
    fn name(self) -> &'static str {
        match self {
            Self::SubjectId => "scope.subjectId",
            Self::Namespace => "scope.namespace",
            Self::ProjectId => "scope.projectId",
            Self::SessionKey => "scope.sessionKey",
        }
    }

    /// What sets the field.
    fn setter(self) -> fn(&mut Scope, &str) {
        match self {
            Self::SubjectId => |scope, id| Self::SubjectId.set(scope, id),
            Self::Namespace => |scope, id| Self::Namespace.set(scope, id),
            Self::ProjectId => |scope, id| Self::ProjectId.set(scope, id),
            Self::SessionKey => |scope, id| Self::SessionKey.set(scope, id),
        }
    }

    /// What clears the field.
    fn clearer(self) -> fn(&mut Scope) {
        match self {
            Self::SubjectId => |scope| scope.subject_id = None,
            Self::Namespace => |scope| scope.namespace = None,
            Self::ProjectId => |scope| scope.project_id = None,
            Self::SessionKey => |scope| scope.session_key = None,
        }
    }

    /// What reads the field.
    fn reader(self) -> fn(&Scope) -> Option<&str> {
        match self {
            Self::SubjectId => |scope| scope.subject_id.as_deref(),
            Self::Namespace => |scope| scope.namespace.as_deref(),
            Self::ProjectId => |scope| scope.project_id.as_deref(),
            Self::SessionKey => |scope| scope.session_key.as_deref(),
        }
    }

    /// Sets the field of a scope to an id.
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
