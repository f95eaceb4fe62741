//! The rows of what an operation writes, and the scope that its provider sees.

use jiff::Timestamp;

use super::{Owner, PrivateWrite, Reader, Records};
use crate::Service;
use crate::operations::record::Ending;
use memhost_store::StoreError;
use memhost_types::{
    Binding, FieldError, Operation, OperationKind, RecordHandle, RecordRow, RecordWrite,
    Replacement, Scope, Sharing, Visibility,
};

/// Whose the records are that an operation writes.
#[derive(Debug, Clone)]
pub(crate) struct Whose {
    pub(crate) visibility: Visibility,
    owner: Option<Owner>,
    /// Whether the request says it: what is there otherwise stays whose it is.
    is_asked: bool,
    writer: Reader,
    /// The oldest time that a record gets from its request.
    since: Option<Timestamp>,
    /// When their material came, where the host kept it before.
    received_at: Option<Timestamp>,
    /// What they take the place of once they count.
    replaces: Option<Replacement>,
}

impl Whose {
    /// What a request asks for, or else the binding's policy says.
    ///
    /// # Errors
    /// Where it is for an agent or a person, and the scope names none.
    pub(crate) fn of(
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
        Ok(Self { is_asked: asked.is_some(), ..Self::by_nobody(visibility, owner) })
    }

    /// The same as what a record is that this one takes the place of.
    pub(crate) fn like(row: &RecordRow) -> Self {
        let owner = Owner::of(row.visibility, &row.scope);
        Self::by_nobody(row.visibility, owner)
    }

    fn by_nobody(visibility: Visibility, owner: Option<Owner>) -> Self {
        let writer = Reader::default();
        Self {
            visibility,
            owner,
            is_asked: false,
            writer,
            since: None,
            received_at: None,
            replaces: None,
        }
    }

    /// The same, where nobody asked for it.
    pub(crate) fn unasked(self) -> Self {
        Self { is_asked: false, ..self }
    }

    /// The same for who writes.
    pub(crate) fn by(self, writer: &Reader) -> Self {
        Self { writer: writer.clone(), ..self }
    }

    /// The same where records get these times from their request.
    pub(crate) fn made_at(self, times: impl Iterator<Item = Timestamp>) -> Self {
        Self { since: times.min(), ..self }
    }

    /// The same where their material came then, and where they take the place of what came from
    /// their source before.
    pub(crate) fn of_material(
        self,
        received_at: Option<Timestamp>,
        replaces: Option<Replacement>,
    ) -> Self {
        Self { received_at, replaces, ..self }
    }

    /// Whose they are; none where they are the company's.
    pub(crate) fn owner(&self) -> Option<&Owner> {
        self.owner.as_ref()
    }

    /// The scope that the provider sees. The agent that writes is named as the one who acts. It is
    /// a partition only where the records are its own.
    pub(crate) fn scope(&self, scope: &Scope) -> Scope {
        let actor_agent_id = scope.agent_id.clone().or_else(|| scope.actor_agent_id.clone());
        let agent_id = match &self.owner {
            Some(Owner::Agent(agent)) => Some(agent.clone()),
            Some(Owner::Person(_)) | None => None,
        };
        Scope { agent_id, actor_agent_id, ..scope.clone() }
    }

    /// The write as the marks have it; none where it is for the company.
    pub(crate) fn private_write(
        &self,
        operation: &Operation,
        binding: &Binding,
    ) -> Option<PrivateWrite> {
        let owner = self.owner.clone()?;
        let began = operation.started_at;
        Some(PrivateWrite {
            company_id: binding.company_id.clone(),
            binding_id: binding.id,
            operation_id: operation.id,
            owner,
            since: self.since.map_or(began, |since| since.min(began)),
        })
    }
}

/// Checks that a scope names whom a visibility means.
///
/// # Errors
/// Where it does not.
pub(crate) fn check_owner(scope: &Scope, visibility: Visibility) -> Result<(), FieldError> {
    if visibility == Visibility::Company || Owner::of(visibility, scope).is_some() {
        return Ok(());
    }
    let field = if visibility == Visibility::Agent { "agentId" } else { "subjectId" };
    Err(FieldError::new(
        "visibility",
        format!("is `{visibility}`, and the scope names none; give `scope.{field}`"),
    ))
}

/// A record that an operation made, and what is known of it beside the operation.
pub(crate) struct Made<'a> {
    pub(crate) handle: &'a RecordHandle,
    /// The row of the record that it takes the place of, or that came with an import.
    pub(crate) origin: Option<&'a RecordRow>,
    /// The record as it was asked for.
    pub(crate) write: Option<&'a RecordWrite>,
}

impl Service {
    /// Adds the rows of records to what is written in one step with an operation's completion.
    pub(crate) async fn note_rows(
        &self,
        ending: &mut Ending,
        binding: &Binding,
        whose: &Whose,
        made: &[Made<'_>],
    ) -> Result<(), StoreError> {
        if made.is_empty() {
            return Ok(());
        }
        if whose.owner.is_some() || self.records.has_private(binding.id) {
            // If two operations write one record, the second one sees the owner that the first one
            // gave it.
            let lock = self.records.lock(binding.id).await?;
            ending.hold(lock);
        }
        let kept = self.kept_facts(&ending.operation().principal, binding);
        let mut rows = Vec::with_capacity(made.len());
        for one in made {
            let before = self.records.row(binding, &one.handle.provider_record_id).await?;
            let new = new_row(ending.operation(), binding, whose, one);
            let row = match before.as_ref().or(one.origin) {
                Some(before) if ending.is_systems() => carried(before, &new),
                // The provider took what was written for a fact that it has. It stays whose it is.
                Some(before) if kept.as_ref().is_some_and(|kept| kept.has(before)) => {
                    RecordRow { handle: new.handle, ..before.clone() }
                }
                Some(before) => replaced(before, new, whose),
                None => new,
            };
            let owner = |row: &RecordRow| Owner::of(row.visibility, &row.scope);
            ending.takes_from(
                before
                    .as_ref()
                    .and_then(owner)
                    .filter(|before| owner(&row).as_ref() != Some(before)),
            );
            rows.extend(Records::write(&row, before.as_ref())?);
            // A company's import brings the row under the name that the record had; the provider
            // may give another one.
            let moved =
                one.origin.filter(|origin| origin.handle != *one.handle && ending.is_systems());
            let moved = moved.map(|origin| &origin.handle.provider_record_id);
            rows.extend(self.records.remove(ending, binding, moved.into_iter()).await?);
        }
        ending.write_beside(rows);
        Ok(())
    }
}

fn new_row(operation: &Operation, binding: &Binding, whose: &Whose, one: &Made<'_>) -> RecordRow {
    let source =
        one.write.and_then(|write| write.source.clone()).or_else(|| operation.source.clone());
    let is_correction = operation.kind == OperationKind::Correct;
    let client = operation.source.as_ref().and_then(|source| source.external_ref.clone());
    RecordRow {
        company_id: binding.company_id.clone(),
        binding_id: binding.id,
        handle: one.handle.clone(),
        scope: one.origin.map_or_else(|| operation.scope.clone(), |origin| origin.scope.clone()),
        source: one.origin.and_then(|origin| origin.source.clone()).or(source),
        hook_kind: operation.hook.as_ref().map(|hook| hook.hook_kind.clone()),
        written_by: operation.principal.clone(),
        operation_id: operation.id,
        created_at: operation.started_at,
        expires_at: one.write.and_then(|write| write.expires_at),
        visibility: whose.visibility,
        received_at: whose.received_at,
        replaces: whose.replaces.clone(),
        corrected_by: is_correction.then(|| operation.principal.clone()),
        corrected_via: client.filter(|_| is_correction),
    }
}

/// A row of another host under the record's name and binding here.
fn carried(before: &RecordRow, new: &RecordRow) -> RecordRow {
    RecordRow { handle: new.handle.clone(), binding_id: new.binding_id, ..before.clone() }
}

/// A record that is written again. What is private stays private, unless its owner says otherwise;
/// what is somebody else's stays theirs, whoever's text a provider has put into it.
fn replaced(before: &RecordRow, new: RecordRow, whose: &Whose) -> RecordRow {
    // A write that names no source changes what came from the one before. From another source it is
    // something else.
    let source = new.source.or_else(|| before.source.clone());
    let replaces =
        new.replaces.or_else(|| before.replaces.clone().filter(|_| source == before.source));
    let received_at = new.received_at.or(before.received_at);
    let new = RecordRow { created_at: before.created_at, source, received_at, replaces, ..new };
    if !before.is_private() {
        return new;
    }
    match whose.writer.may_read(before) {
        false => RecordRow { handle: new.handle, ..before.clone() },
        true if whose.is_asked => new,
        true => RecordRow { scope: before.scope.clone(), visibility: before.visibility, ..new },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn row(agent: &str, visibility: Visibility) -> RecordRow {
        let company: memhost_types::CompanyId = "acme".parse().unwrap();
        RecordRow {
            binding_id: memhost_types::BindingId(Uuid::nil()),
            handle: RecordHandle {
                provider_key: "p".parse().unwrap(),
                provider_record_id: "r".parse().unwrap(),
            },
            scope: Scope {
                agent_id: Some(agent.parse().unwrap()),
                ..Scope::company(company.clone())
            },
            company_id: company,
            source: None,
            hook_kind: None,
            written_by: format!("agent:{agent}"),
            operation_id: memhost_types::OperationId::new(1, 1, 1),
            created_at: Timestamp::UNIX_EPOCH,
            expires_at: None,
            visibility,
            received_at: None,
            replaces: None,
            corrected_by: None,
            corrected_via: None,
        }
    }

    fn writes(agent: &str, visibility: Visibility, is_asked: bool) -> Whose {
        let writer = Reader::Agent(agent.parse().unwrap());
        let owner = Owner::of(visibility, &row(agent, visibility).scope);
        Whose { is_asked, writer, ..Whose::by_nobody(visibility, owner) }
    }

    #[test]
    fn a_private_record_stays_its_owners_whoever_writes_it() {
        use Visibility::{Agent, Company};
        let before = row("ada", Agent);
        let after = |agent, visibility, is_asked| {
            let found =
                replaced(&before, row(agent, visibility), &writes(agent, visibility, is_asked));
            (found.scope.agent_id.unwrap().to_string(), found.visibility)
        };
        assert_eq!(after("carol", Company, true), ("ada".to_owned(), Agent));
        assert_eq!(after("carol", Agent, true), ("ada".to_owned(), Agent));
        assert_eq!(after("ada", Company, false), ("ada".to_owned(), Agent));
        assert_eq!(
            after("ada", Company, true),
            ("ada".to_owned(), Company),
            "its owner gives it to all"
        );
        let shared =
            replaced(&row("ada", Company), row("carol", Agent), &writes("carol", Agent, true));
        assert_eq!(shared.visibility, Agent);
    }
}
