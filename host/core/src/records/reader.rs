//! Who reads: what of a company a caller is answered in a scope.

use serde::{Deserialize, Serialize};

use crate::access::Caller;
use memhost_types::{AgentId, RecordRow, Scope, Visibility};

/// Whose a private record is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Owner {
    Agent(AgentId),
    /// A `subjectId`.
    Person(String),
}

impl Owner {
    /// The owner of what is written with this visibility in this scope; none where it is for the
    /// company, or where the scope does not name one.
    pub(crate) fn of(visibility: Visibility, scope: &Scope) -> Option<Self> {
        match visibility {
            Visibility::Company => None,
            Visibility::Agent => scope.agent_id.clone().map(Self::Agent),
            Visibility::Person => scope.subject_id.clone().map(Self::Person),
        }
    }
}

/// Who reads. A scope narrows: an administrator who asks for an agent gets what the agent gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Reader {
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
    /// The reader that a caller is in a scope, which is confined to what the caller may name.
    /// Whoever acts for a person is that person, whatever the scope says.
    pub(crate) fn of(caller: &Caller, scope: &Scope) -> Self {
        if let Some(person) = caller.person() {
            return Self::Person(person.to_owned());
        }
        match (&scope.agent_id, &scope.subject_id) {
            (Some(agent), _) => Self::Agent(agent.clone()),
            (None, Some(person)) => Self::Person(person.clone()),
            (None, None) if caller.sees_private(&scope.company_id) => Self::All,
            (None, None) => Self::Nobody,
        }
    }

    /// Whether what belongs to this owner may be read.
    pub(crate) fn is(&self, owner: &Owner) -> bool {
        match (self, owner) {
            (Self::All, _) => true,
            (Self::Agent(own), Owner::Agent(agent)) => own == agent,
            (Self::Person(own), Owner::Person(person)) => own == person,
            _ => false,
        }
    }

    /// Whether a record may be read. One that is private to nobody is nobody's.
    pub(crate) fn may_read(&self, row: &RecordRow) -> bool {
        let is_own = || Owner::of(row.visibility, &row.scope).is_some_and(|owner| self.is(&owner));
        *self == Self::All || !row.is_private() || is_own()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(agent: Option<&str>, person: Option<&str>) -> Scope {
        Scope {
            agent_id: agent.map(|id| id.parse().unwrap()),
            subject_id: person.map(str::to_owned),
            ..Scope::company("acme".parse().unwrap())
        }
    }

    #[test]
    fn a_scope_narrows_what_an_operator_reads() {
        let of = |agent, person| Reader::of(&Caller::operator(), &scope(agent, person));
        assert_eq!(of(None, None), Reader::All);
        assert_eq!(of(Some("ada"), None), Reader::Agent("ada".parse().unwrap()));
        assert_eq!(
            of(Some("ada"), Some("u1")),
            Reader::Agent("ada".parse().unwrap()),
            "an agent claims no person"
        );
        assert_eq!(of(None, Some("u1")), Reader::Person("u1".to_owned()));
        // The host works for whom the scope names: it may not see more than they do.
        assert_eq!(Reader::of(&Caller::worker(), &scope(None, None)), Reader::Nobody);
        assert_eq!(
            Reader::of(&Caller::operator().through("mcp:x"), &scope(None, None)),
            Reader::Nobody
        );
        assert_eq!(Reader::of(&Caller::system(), &scope(None, None)), Reader::All);
    }

    #[test]
    fn only_the_owner_is_the_owner() {
        let owner = Owner::of(Visibility::Agent, &scope(Some("ada"), None)).unwrap();
        assert!(Reader::All.is(&owner) && Reader::Agent("ada".parse().unwrap()).is(&owner));
        for other in [
            Reader::Agent("carol".parse().unwrap()),
            Reader::Person("ada".to_owned()),
            Reader::Nobody,
        ] {
            assert!(!other.is(&owner), "{other:?}");
        }
        assert_eq!(Owner::of(Visibility::Person, &scope(Some("ada"), None)), None);
    }
}
