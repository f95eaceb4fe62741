//! The rows of what an operation wrote or imported.

use super::marks::Mark;
use super::{Owner, Ownership, Reader, Records, RowChanges};
use memhost_store::{StoreError, TableWrite};
use memhost_types::{
    Binding, Operation, OperationKind, RecordHandle, RecordRow, RecordWrite, Scope, Snippet,
    Visibility,
};

/// A record that an operation made, and what is known of it beside the operation.
#[derive(Debug, Clone, Copy)]
pub struct Made<'a> {
    /// The record.
    pub handle: &'a RecordHandle,
    /// The row of the record that it replaces, or that came with an import.
    pub origin: Option<&'a RecordRow>,
    /// The record as it was asked for.
    pub write: Option<&'a RecordWrite>,
    /// Who made it, where its writer names somebody.
    pub created_by: Option<&'a str>,
}

impl Records {
    /// The rows of records that an operation of this writer made. `is_systems`: the host imports a
    /// company, whose rows it carries over. `is_kept` says which records that were there keep their
    /// row, whatever the provider made of them.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn written(
        &self,
        operation: &Operation,
        binding: &Binding,
        (writer, ownership): (&Reader, &Ownership),
        made: &[Made<'_>],
        (is_systems, is_kept): (bool, impl Fn(&RecordRow) -> bool),
    ) -> Result<RowChanges, StoreError> {
        let mut changes = RowChanges::default();
        if made.is_empty() {
            return Ok(changes);
        }
        if ownership.owner().is_some() || self.has_private(binding.id) {
            // The second of two operations that write one record sees the row of the first one.
            changes.lock = Some(self.lock(binding.id).await?);
        }
        for one in made {
            let before = self.row(binding, &one.handle.provider_record_id).await?;
            let new = new_row(operation, binding, ownership, one);
            let row = match before.as_ref().or(one.origin) {
                Some(before) if is_systems => carried(before, &new),
                // The provider merged what was written into a record that stays as it is.
                Some(before) if is_kept(before) => {
                    RecordRow { handle: new.handle, ..before.clone() }
                }
                Some(before) => replaced(before, new, writer, ownership),
                None => new,
            };
            let owner = Owner::of_row(&row);
            let before_owner = before.as_ref().and_then(Owner::of_row);
            changes.taken_from.extend(before_owner.filter(|before| owner.as_ref() != Some(before)));
            changes.writes.extend(self.write(&row, before.as_ref())?);
            // A company's import brings the row under the name that the record had; the provider
            // may give another one.
            let moved = one.origin.filter(|origin| is_systems && origin.handle != *one.handle);
            let moved = moved.map(|origin| &origin.handle.provider_record_id);
            let removed = self.remove(binding, moved.into_iter()).await?;
            changes.writes.extend(removed.writes);
            changes.taken_from.extend(removed.taken_from);
        }
        Ok(changes)
    }

    /// The rows of records that came as lines of their provider, for those that have none. A record
    /// in an agent's partition belongs to that agent. The caller holds the binding's lock until
    /// they are on disk: nobody finds before that the agent has no private records.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn imported(
        &self,
        operation: &Operation,
        binding: &Binding,
        snippets: &[Snippet],
    ) -> Result<Vec<TableWrite>, StoreError> {
        let mut writes = Vec::new();
        for snippet in snippets {
            if self.row(binding, &snippet.handle.provider_record_id).await?.is_some() {
                continue;
            }
            let row = imported_row(operation, binding, snippet);
            if let Some(owner) = Owner::of_row(&row) {
                writes.push(Mark::owns(&binding.company_id, binding.id, owner.clone()).write()?);
                self.own(binding.id, owner);
            }
            writes.extend(self.write(&row, None)?);
        }
        Ok(writes)
    }
}

fn new_row(
    operation: &Operation,
    binding: &Binding,
    ownership: &Ownership,
    one: &Made<'_>,
) -> RecordRow {
    let source =
        one.write.and_then(|write| write.source.clone()).or_else(|| operation.source.clone());
    let is_correction = operation.kind == OperationKind::Correct;
    let client = operation.source.as_ref().and_then(|source| source.external_ref.clone());
    let (hook_kind, hook_agent_id, hook_run_id) = match (one.origin, &operation.hook) {
        (Some(origin), _) => {
            (origin.hook_kind.clone(), origin.hook_agent_id.clone(), origin.hook_run_id.clone())
        }
        (None, Some(hook)) => (
            Some(hook.hook_kind.clone()),
            hook.actor_agent_id.clone(),
            hook.heartbeat_run_id.clone(),
        ),
        (None, None) => (None, None, None),
    };
    RecordRow {
        company_id: binding.company_id.clone(),
        binding_id: binding.id,
        handle: one.handle.clone(),
        scope: one.origin.map_or_else(|| operation.scope.clone(), |origin| origin.scope.clone()),
        source: one.origin.and_then(|origin| origin.source.clone()).or(source),
        hook_kind,
        hook_agent_id,
        hook_run_id,
        written_by: ownership.writer.as_ref().unwrap_or(&operation.principal).clone(),
        created_by: one.created_by.map(str::to_owned),
        operation_id: operation.id,
        created_at: operation.started_at,
        expires_at: one.write.and_then(|write| write.expires_at),
        visibility: ownership.visibility(),
        happened_at: ownership.happened_at,
        replaces: ownership.replaces.clone(),
        corrected_by: is_correction.then(|| operation.principal.clone()),
        corrected_via: client.filter(|_| is_correction),
    }
}

fn imported_row(operation: &Operation, binding: &Binding, snippet: &Snippet) -> RecordRow {
    let scope = snippet.scope.clone().unwrap_or_else(|| Scope::company(binding.company_id.clone()));
    RecordRow {
        company_id: binding.company_id.clone(),
        binding_id: binding.id,
        handle: snippet.handle.clone(),
        visibility: visibility_in(&scope),
        scope,
        source: snippet.source.clone(),
        hook_kind: None,
        hook_agent_id: None,
        hook_run_id: None,
        written_by: operation.principal.clone(),
        created_by: None,
        operation_id: operation.id,
        created_at: snippet
            .created_at
            .map_or(operation.started_at, |at| at.min(operation.started_at)),
        expires_at: snippet.expires_at,
        happened_at: None,
        replaces: None,
        corrected_by: None,
        corrected_via: None,
    }
}

/// The visibility of a record that came from elsewhere, of which only the scope is known: that of
/// an agent's partition is the agent's.
pub fn visibility_in(scope: &Scope) -> Visibility {
    if scope.agent_id.is_some() { Visibility::Agent } else { Visibility::Company }
}

/// A row of another host under the record's name and binding here.
fn carried(before: &RecordRow, new: &RecordRow) -> RecordRow {
    RecordRow { handle: new.handle.clone(), binding_id: new.binding_id, ..before.clone() }
}

/// A record that is written again. A private record stays private, unless its owner says otherwise,
/// and it stays its owner's, whoever's text a provider has put into it.
fn replaced(
    before: &RecordRow,
    new: RecordRow,
    writer: &Reader,
    ownership: &Ownership,
) -> RecordRow {
    // A write that names no source changes what came from the one before. From another source it is
    // something else.
    let source = new.source.or_else(|| before.source.clone());
    let replaces =
        new.replaces.or_else(|| before.replaces.clone().filter(|_| source == before.source));
    let happened_at = new.happened_at.or(before.happened_at);
    let new = RecordRow { created_at: before.created_at, source, happened_at, replaces, ..new };
    if !before.is_private() {
        return new;
    }
    match writer.may_read(before) {
        false => RecordRow { handle: new.handle, ..before.clone() },
        true if ownership.is_asked => new,
        true => RecordRow { scope: before.scope.clone(), visibility: before.visibility, ..new },
    }
}
