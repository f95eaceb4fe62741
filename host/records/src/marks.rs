//! Which bindings have private records, and private writes whose end the host does not know.
//!
//! A private write leaves a mark in one step with its intent, before the provider is called. The
//! completion removes it in one step with the records' rows. In between the provider may have a
//! record without a row: a read does not return such a record to others. A write that ended without
//! an answer, or with a crash, leaves the time in which it ran. A record without a row that may
//! have been made in that time stays invisible to others. The mark of an owner is removed with the
//! last private record ([`Records::remove_stale`](super::Records::remove_stale)).

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Owner, Ownership, Reader};
use memhost_store::{self as store, Change, Store, StoreError, Table, TableWrite};
use memhost_types::{Binding, BindingId, CompanyId, Operation, OperationId};

/// A private write that runs.
#[derive(Debug, Clone)]
pub(super) struct PrivateWrite {
    pub(super) company_id: CompanyId,
    pub(super) binding_id: BindingId,
    pub(super) operation_id: OperationId,
    pub(super) owner: Owner,
    /// No record that it makes says that it is older.
    pub(super) since: Timestamp,
}

impl PrivateWrite {
    /// The private write that an operation is. `None`: it writes for the company.
    pub(super) fn of(
        operation: &Operation,
        binding: &Binding,
        ownership: &Ownership,
    ) -> Option<Self> {
        let began = operation.started_at;
        Some(Self {
            company_id: binding.company_id.clone(),
            binding_id: binding.id,
            operation_id: operation.id,
            owner: ownership.owner()?.clone(),
            since: ownership.oldest.map_or(began, |oldest| oldest.min(began)),
        })
    }
}

/// A row of the table, as an import reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// The company of the binding.
    pub company_id: CompanyId,
    /// The binding that the mark is about.
    pub binding_id: BindingId,
    pub(super) owner: Owner,
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum What {
    /// The owner has private records, or may have.
    Owns,
    /// A private write goes on.
    Goes { operation_id: OperationId, since: Timestamp },
    /// Private writes ended, and what they wrote is not known.
    Unknown { since: Timestamp, until: Timestamp },
}

impl Mark {
    /// That an owner has private records at a binding.
    pub fn owns(company: &CompanyId, binding: BindingId, owner: Owner) -> Self {
        Self { company_id: company.clone(), binding_id: binding, owner, what: What::Owns }
    }

    /// Whether the mark has this key in its table.
    pub fn has_key(&self, found: &[u8]) -> bool {
        found == self.key()
    }

    pub(super) fn key(&self) -> Vec<u8> {
        let owner = match &self.owner {
            Owner::Agent(agent) => ["a\0", agent.as_str()],
            Owner::Person(person) => ["p\0", person],
        };
        let (kind, rest) = match &self.what {
            What::Owns => (b"o", owner.concat().into_bytes()),
            What::Goes { operation_id, .. } => (b"g", operation_id.uuid().as_bytes().to_vec()),
            What::Unknown { .. } => (b"u", owner.concat().into_bytes()),
        };
        store::company_key(
            &self.company_id,
            &[self.binding_id.0.as_bytes(), &kind[..], &rest].concat(),
        )
    }

    /// The owner, if the mark says no more than that they have private records.
    pub(super) fn owner_only(self) -> Option<(BindingId, Owner)> {
        (self.what == What::Owns).then_some((self.binding_id, self.owner))
    }

    /// The row as it is written.
    ///
    /// # Errors
    /// Where it cannot be encoded.
    pub fn write(&self) -> Result<TableWrite, StoreError> {
        Ok(TableWrite::new(
            Table::PrivateWrites,
            self.key(),
            Some(store::encode("private write", self)?),
        ))
    }
}

/// The marks of one binding.
#[derive(Debug, Default)]
pub(super) struct OfBinding {
    pub(super) owners: BTreeSet<Owner>,
    pub(super) going: HashMap<OperationId, (Owner, Timestamp)>,
    pub(super) unknown: HashMap<Owner, (Timestamp, Timestamp)>,
}

/// All marks.
#[derive(Debug, Default)]
pub(super) struct Marks(HashMap<BindingId, OfBinding>);

impl Marks {
    /// Reads the marks below a prefix. What goes on according to them was cut off, by a crash or by
    /// an export: from here on it has ended now.
    pub(super) async fn read(
        store: &dyn Store,
        prefix: &[u8],
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let mut all = Self::as_written(store, prefix).await?;
        let (mut rows, mut cut) =
            (store::scan_all(store, Table::PrivateWrites, prefix), Vec::new());
        while let Some((key, mark)) = rows.next_row::<Mark>("private write").await? {
            if let What::Goes { operation_id, since } = mark.what {
                cut.push((key, mark, operation_id, since));
            }
        }
        drop(rows);
        for (key, mark, operation_id, since) in cut {
            let ended = all.unknown(&mark.company_id, mark.binding_id, &mark.owner, since, now);
            all.of(mark.binding_id).going.remove(&operation_id);
            let changes =
                [Change::always(Table::PrivateWrites, key, None), Change::from(ended.write()?)];
            store::write(store, &changes).await?;
        }
        Ok(all)
    }

    /// Reads the marks below a prefix.
    pub(super) async fn as_written(store: &dyn Store, prefix: &[u8]) -> Result<Self, StoreError> {
        let mut all = Self::default();
        let mut rows = store::scan_all(store, Table::PrivateWrites, prefix);
        while let Some((_, mark)) = rows.next_row::<Mark>("private write").await? {
            let of = all.of(mark.binding_id);
            // Every mark says it: that of an owner is removed when nothing seems to go on.
            of.owners.insert(mark.owner.clone());
            match mark.what {
                What::Owns => {}
                What::Goes { operation_id, since } => {
                    of.going.insert(operation_id, (mark.owner, since));
                }
                What::Unknown { since, until } => {
                    of.unknown.insert(mark.owner, (since, until));
                }
            }
        }
        Ok(all)
    }

    /// The marks of a binding, if it has any.
    pub(super) fn get(&self, binding: BindingId) -> Option<&OfBinding> {
        self.0.get(&binding)
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(super) fn forget(&mut self, binding: BindingId) {
        self.0.remove(&binding);
    }

    /// Whether no private write of this owner goes on or ended without being known.
    pub(super) fn is_idle(&self, binding: BindingId, owner: &Owner) -> bool {
        let Some(of) = self.get(binding) else { return true };
        !of.unknown.contains_key(owner) && of.going.values().all(|(going, _)| going != owner)
    }

    /// These owners have no private records any more. Answers those of whom a write has begun
    /// meanwhile: they have.
    pub(super) fn disown(&mut self, binding: BindingId, owners: &BTreeSet<Owner>) -> Vec<Owner> {
        let (idle, began): (Vec<&Owner>, Vec<&Owner>) =
            owners.iter().partition(|owner| self.is_idle(binding, owner));
        for owner in idle {
            self.of(binding).owners.remove(owner);
        }
        began.into_iter().cloned().collect()
    }

    pub(super) fn of(&mut self, binding: BindingId) -> &mut OfBinding {
        self.0.entry(binding).or_default()
    }

    /// Extends the time in which writes of this owner ended without being known.
    pub(super) fn unknown(
        &mut self,
        company: &CompanyId,
        binding: BindingId,
        owner: &Owner,
        since: Timestamp,
        until: Timestamp,
    ) -> Mark {
        let (since, until) = match self.of(binding).unknown.get(owner) {
            Some((from, to)) => (since.min(*from), until.max(*to)),
            None => (since, until),
        };
        self.of(binding).unknown.insert(owner.clone(), (since, until));
        let what = What::Unknown { since, until };
        Mark { company_id: company.clone(), binding_id: binding, owner: owner.clone(), what }
    }

    /// Whether somebody else than the reader has private records at a binding.
    pub(super) fn has_others(&self, binding: BindingId, reader: &Reader) -> bool {
        self.get(binding).is_some_and(|marks| marks.owners.iter().any(|owner| !reader.is(owner)))
    }
}
