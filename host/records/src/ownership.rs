//! The ownership of what an operation writes, and the scope that its provider sees.

use jiff::Timestamp;

use super::Owner;
use memhost_types::{
    Binding, FieldError, Principal, RecordRow, Replacement, Scope, Sharing, Visibility,
};

/// The ownership of the records that an operation writes.
#[derive(Debug, Clone)]
pub struct Ownership {
    visibility: Visibility,
    owner: Option<Owner>,
    /// Whether the request names the visibility. If it does not, a record that is replaced keeps
    /// its own.
    pub(super) is_asked: bool,
    /// The oldest time that a record gets from its request.
    pub(super) oldest: Option<Timestamp>,
    /// When the event happened that the material is of.
    pub(super) happened_at: Option<Timestamp>,
    /// The records that these replace once they count.
    pub(super) replaces: Option<Replacement>,
    /// Whose material it is, where another one asks.
    pub(super) writer: Option<Principal>,
}

impl Ownership {
    /// What a request asks for, or else the binding's policy says.
    ///
    /// # Errors
    /// Where the records are for an agent or a person, and the scope names none.
    pub fn of(
        binding: &Binding,
        scope: &Scope,
        asked: Option<Visibility>,
    ) -> Result<Self, FieldError> {
        let usual = match binding.policy.sharing {
            Sharing::PerAgent if scope.agent_id.is_some() => Visibility::Agent,
            Sharing::PerAgent | Sharing::Shared => Visibility::Company,
        };
        let visibility = asked.unwrap_or(usual);
        check_owner(scope, visibility)?;
        let owner = Owner::of(visibility, scope);
        Ok(Self { is_asked: asked.is_some(), ..Self::unasked_of(visibility, owner) })
    }

    /// The ownership of the record that is replaced.
    pub fn like(row: &RecordRow) -> Self {
        Self::unasked_of(row.visibility, Owner::of_row(row))
    }

    fn unasked_of(visibility: Visibility, owner: Option<Owner>) -> Self {
        let (oldest, happened_at, replaces, writer) = (None, None, None, None);
        Self { visibility, owner, is_asked: false, oldest, happened_at, replaces, writer }
    }

    /// The same, where no request names it.
    #[must_use]
    pub fn unasked(self) -> Self {
        Self { is_asked: false, ..self }
    }

    /// The same, where records get these times from their request.
    #[must_use]
    pub fn made_at(self, times: impl Iterator<Item = Timestamp>) -> Self {
        Self { oldest: times.min(), ..self }
    }

    /// The same, where the material is of an event of this time and the records replace what came
    /// from their source before.
    #[must_use]
    pub fn of_material(
        self,
        happened_at: Option<Timestamp>,
        replaces: Option<Replacement>,
    ) -> Self {
        Self { happened_at, replaces, ..self }
    }

    /// The same, where somebody else brought the material than who asks now.
    #[must_use]
    pub fn brought_by(self, writer: Option<Principal>) -> Self {
        Self { writer, ..self }
    }

    /// The readers of the records.
    pub fn visibility(&self) -> Visibility {
        self.visibility
    }

    /// The owner. `None`: the company.
    pub fn owner(&self) -> Option<&Owner> {
        self.owner.as_ref()
    }

    /// The scope that the provider sees. It names the agent that writes as the one who acts. It is
    /// an agent's partition only if the records belong to that agent.
    pub fn scope(&self, scope: &Scope) -> Scope {
        let actor_agent_id = scope.agent_id.clone().or_else(|| scope.actor_agent_id.clone());
        let agent_id = match &self.owner {
            Some(Owner::Agent(agent)) => Some(agent.clone()),
            Some(Owner::Person(_)) | None => None,
        };
        Scope { agent_id, actor_agent_id, ..scope.clone() }
    }
}

/// Checks that a scope names the owner that a visibility means.
///
/// # Errors
/// Where it does not.
pub fn check_owner(scope: &Scope, visibility: Visibility) -> Result<(), FieldError> {
    if visibility == Visibility::Company || Owner::of(visibility, scope).is_some() {
        return Ok(());
    }
    let field = if visibility == Visibility::Agent { "agentId" } else { "subjectId" };
    Err(FieldError::new(
        "visibility",
        format!("is `{visibility}`, and the scope names none; give `scope.{field}`"),
    ))
}
