//! Scopes that were forgotten: the records of a scope, and what comes for it later of material that
//! was there before. The rows are beside those of forgotten sources; no scope has the key of a
//! source.

use jiff::Timestamp;

use super::sources::{Part, Since, key_of};
use super::{Owner, Reader, Records};
use memhost_store::{self as store, StoreError, Table, TableWrite};
use memhost_types::{Binding, OperationId, RecordRow, Scope};

/// Stands for all scopes: its row says when one was forgotten last.
const ANY: &[u8] = b"any scope";

fn key(binding: &Binding, scope: &Scope, part: Part<'_>) -> Vec<u8> {
    // Every scope names its company, which no source does.
    key_of(&binding.company_id, binding.id, memhost_ports::to_json(scope).unwrap_or_default(), part)
}

fn any_key(binding: &Binding) -> Vec<u8> {
    key_of(&binding.company_id, binding.id, ANY.to_vec(), Part::All)
}

impl Records {
    /// The rows that say that a scope is forgotten from an operation on, for the records that a
    /// reader may read; events that came before `before` are part of it.
    pub(crate) async fn forgets_scope(
        &self,
        reader: &Reader,
        binding: &Binding,
        scope: &Scope,
        by: OperationId,
        before: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<TableWrite>, StoreError> {
        let (part, own) = Part::read_by(reader);
        let own = own.as_ref().map(|own| key(binding, scope, Part::Of(own)));
        let keys = [any_key(binding), key(binding, scope, part)].into_iter().chain(own);
        let mut rows = Vec::with_capacity(3);
        for key in keys {
            rows.push(self.forgotten_from(key, by, before, now).await?);
        }
        Ok(rows)
    }

    /// Whether what belongs to an owner, or else to the company, was forgotten of a scope around
    /// this one after the host got what is captured for it. It costs one read, unless a scope was
    /// forgotten at the binding since then.
    pub(crate) async fn is_scope_forgotten(
        &self,
        binding: &Binding,
        scope: &Scope,
        owner: Option<&Owner>,
        since: Since,
    ) -> Result<bool, StoreError> {
        if !self.forgotten_at(&any_key(binding)).await?.is_some_and(|last| last.has(since)) {
            return Ok(false);
        }
        for around in scope.all_around() {
            for part in [Part::All, Part::with(owner)] {
                if self
                    .forgotten_at(&key(binding, &around, part))
                    .await?
                    .is_some_and(|known| known.has(since))
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// At most so many rows of a binding whose scope is within this one and that are wanted. Reads
    /// all rows of the binding.
    pub(crate) async fn of_scope(
        &self,
        binding: &Binding,
        scope: &Scope,
        most: usize,
        is_wanted: impl Fn(&RecordRow) -> bool,
    ) -> Result<Vec<RecordRow>, StoreError> {
        let prefix = store::company_key(&binding.company_id, binding.id.0.as_bytes());
        let mut rows = store::scan_all(&*self.store, Table::Records, &prefix);
        let mut found = Vec::new();
        while found.len() < most
            && let Some((_, row)) = rows.next_row::<RecordRow>("record row").await?
        {
            if scope.covers(&row.scope) && is_wanted(&row) {
                found.push(row);
            }
        }
        Ok(found)
    }
}
