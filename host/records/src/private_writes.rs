//! Private writes, from their intent to their end.

use jiff::{SignedDuration, Timestamp};

use super::marks::{Mark, PrivateWrite, What};
use super::{Owner, Reader, Records};
use memhost_store::{StoreError, Table, TableWrite};
use memhost_types::{Binding, BindingId};

/// How far a provider's clock may be from the host's.
const SLACK: SignedDuration = SignedDuration::from_mins(10);

impl Records {
    /// An owner has private records at a binding.
    pub(super) fn own(&self, binding: BindingId, owner: Owner) {
        self.marks.write().of(binding).owners.insert(owner);
    }

    /// The rows that a private write leaves with its intent. From here on records without a row may
    /// be its own.
    pub(super) fn begin(&self, write: &PrivateWrite) -> Result<Vec<TableWrite>, StoreError> {
        let PrivateWrite { company_id, binding_id, operation_id, owner, since } = write.clone();
        let what = What::Goes { operation_id, since };
        let going = Mark { company_id: company_id.clone(), binding_id, owner: owner.clone(), what };
        let owns = Mark::owns(&company_id, binding_id, owner.clone());
        let rows = vec![going.write()?, owns.write()?];
        let mut marks = self.marks.write();
        let of = marks.of(binding_id);
        of.owners.insert(owner.clone());
        of.going.insert(operation_id, (owner, since));
        Ok(rows)
    }

    /// The rows that the end of a private write changes. `is_known`: each record that it made has a
    /// row.
    pub(super) fn end(
        &self,
        write: &PrivateWrite,
        is_known: bool,
        now: Timestamp,
    ) -> Result<Vec<TableWrite>, StoreError> {
        let what = What::Goes { operation_id: write.operation_id, since: write.since };
        let (company, binding) = (&write.company_id, write.binding_id);
        let going = Mark {
            company_id: company.clone(),
            binding_id: binding,
            owner: write.owner.clone(),
            what,
        };
        let mut rows = vec![TableWrite::new(Table::PrivateWrites, going.key(), None)];
        if !is_known {
            rows.push(
                self.marks
                    .write()
                    .unknown(company, binding, &write.owner, write.since, now)
                    .write()?,
            );
        }
        Ok(rows)
    }

    /// The end of a private write is on disk.
    pub(super) fn ended(&self, write: &PrivateWrite) {
        self.marks.write().of(write.binding_id).going.remove(&write.operation_id);
    }

    /// Whether a record without a row, made at this time as far as that is known, may be a private
    /// one of somebody else.
    pub(super) fn may_be_private(
        &self,
        binding: &Binding,
        reader: &Reader,
        made: &[Timestamp],
    ) -> bool {
        let marks = self.marks.read();
        let Some(of) = marks.get(binding.id) else { return false };
        let not_before =
            |since: Timestamp| made.is_empty() || made.iter().any(|at| *at >= earlier(since));
        let not_after =
            |until: Timestamp| made.is_empty() || made.iter().any(|at| *at <= later(until));
        of.going.values().any(|(owner, since)| !reader.is(owner) && not_before(*since))
            || of.unknown.iter().any(|(owner, (since, until))| {
                !reader.is(owner) && not_before(*since) && not_after(*until)
            })
    }
}

fn earlier(at: Timestamp) -> Timestamp {
    at.checked_sub(SLACK).unwrap_or(Timestamp::MIN)
}

fn later(at: Timestamp) -> Timestamp {
    at.checked_add(SLACK).unwrap_or(Timestamp::MAX)
}
