//! Owners and readers: to whom a private record belongs, and what a reader may see.

use serde::{Deserialize, Serialize};

use memhost_types::{AgentId, RecordRow, Scope, Visibility};

/// To whom a private record belongs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// An agent.
    Agent(AgentId),
    /// A person, by `subjectId`.
    Person(String),
}

impl Owner {
    /// The owner of what is written with this visibility in this scope. `None`: it is for the
    /// company, or the scope names no owner.
    pub fn of(visibility: Visibility, scope: &Scope) -> Option<Self> {
        match visibility {
            Visibility::Company => None,
            Visibility::Agent => scope.agent_id.clone().map(Self::Agent),
            Visibility::Person => scope.subject_id.clone().map(Self::Person),
        }
    }

    /// The owner of a record. `None`: it is for the company.
    pub fn of_row(row: &RecordRow) -> Option<Self> {
        Self::of(row.visibility, &row.scope)
    }
}

/// The properties of a caller that decide, beside the scope, which records it may see.
#[derive(Debug, Clone, Copy, Default)]
pub struct Viewer<'a> {
    /// The person that they act for.
    pub person: Option<&'a str>,
    /// Whether they see records that are private to others, in the scope of the whole company.
    pub sees_private: bool,
}

/// The reader. A scope narrows: an administrator who asks for an agent gets what the agent gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Reader {
    /// Whoever may view the company, in the scope of the whole company.
    All,
    /// An agent: its own records beside the company's.
    Agent(AgentId),
    /// A person: their own records beside the company's.
    Person(String),
    /// Somebody of whom the scope says nothing: the company's records only.
    #[default]
    Nobody,
}

impl Reader {
    /// The caller as a reader in a scope that was confined for it. A caller that acts for a person
    /// is that person, whatever the scope says.
    pub fn of(viewer: &Viewer<'_>, scope: &Scope) -> Self {
        if let Some(person) = viewer.person {
            return Self::Person(person.to_owned());
        }
        match (&scope.agent_id, &scope.subject_id) {
            (Some(agent), _) => Self::Agent(agent.clone()),
            (None, Some(person)) => Self::Person(person.clone()),
            (None, None) if viewer.sees_private => Self::All,
            (None, None) => Self::Nobody,
        }
    }

    /// Whether what belongs to this owner may be read.
    pub fn is(&self, owner: &Owner) -> bool {
        match (self, owner) {
            (Self::All, _) => true,
            (Self::Agent(own), Owner::Agent(agent)) => own == agent,
            (Self::Person(own), Owner::Person(person)) => own == person,
            _ => false,
        }
    }

    /// Whether what was written with this visibility in this scope may be read. What is private to
    /// nobody is read by [`Reader::All`] only.
    pub fn may_read_of(&self, visibility: Visibility, scope: &Scope) -> bool {
        let is_own = || Owner::of(visibility, scope).is_some_and(|owner| self.is(&owner));
        *self == Self::All || visibility == Visibility::Company || is_own()
    }

    /// Whether what was written with this visibility in this scope may be forgotten: what may be
    /// read, and what is private to nobody.
    pub fn may_forget_of(&self, visibility: Visibility, scope: &Scope) -> bool {
        Owner::of(visibility, scope).is_none_or(|owner| self.is(&owner))
    }

    /// Whether a record may be read.
    pub fn may_read(&self, row: &RecordRow) -> bool {
        self.may_read_of(row.visibility, &row.scope)
    }
}
