//! Replacing what came from a source before: once what takes its place counts, that is, once nobody
//! must approve it.

use async_recursion::async_recursion as boxed;
use std::collections::HashSet;

use crate::Operations;
use memhost_access::Caller;
use memhost_records::Selection;
use memhost_store::{self as store, Change};
use memhost_tenancy::ServiceError;
use memhost_tenancy::forgetter_of;
use memhost_types::{
    Binding, RecordHandle, RecordRow, Refusal, Replacement, ReviewItem, ReviewStatus,
    ReviewSubject, Scope, SourceRef, SourceSelector, limits,
};

/// Whether a record's material is of an earlier event than that which takes its place. If both
/// happened at the same time, the later arrival counts.
fn is_before(row: &RecordRow, by: &Replacement) -> bool {
    let came = match &row.replaces {
        Some(own) => (own.happened_at, own.operation_id),
        None => (row.happened_at.unwrap_or(row.created_at), row.operation_id),
    };
    (came.0, came.1.sequence()) < (by.happened_at, by.operation_id.sequence())
}

impl Operations {
    /// Forgets what came from a source before these records, if any of them counts. What waits for
    /// a person replaces nothing yet, and so does an answer without records.
    ///
    /// # Errors
    /// Where the store fails, or the earlier records cannot be forgotten.
    #[boxed]
    pub async fn replace_if_any_counts(
        &self,
        binding: &Binding,
        source: &SourceRef,
        scope: &Scope,
        by: &Replacement,
        records: &[RecordHandle],
    ) -> Result<(), Refusal> {
        match records
            .iter()
            .any(|handle| !self.reviews.waits(binding.id, &handle.provider_record_id))
        {
            true => self.replace(binding, source, scope, by, records).await,
            false => Ok(()),
        }
    }

    /// Forgets what is older than `by` and of its source, but for the records that take its place:
    /// that of everybody, or what the agent or the person of the scope may read.
    async fn replace(
        &self,
        binding: &Binding,
        source: &SourceRef,
        scope: &Scope,
        by: &Replacement,
        kept: &[RecordHandle],
    ) -> Result<(), Refusal> {
        let Some(selector) = SourceSelector::of(source) else { return Ok(()) };
        let sources = [selector];
        let what = Selection::Sources(&sources);
        let reader = forgetter_of(by.of_everybody, &Caller::worker(), scope);
        // First it is remembered: what is written from here on of older material is forgotten by
        // whoever writes it.
        let (id, before, now) = (by.operation_id, by.happened_at, self.clock.now());
        let rows = self.records.forgets(&reader, binding, what, id, (before, now)).await?;
        store::write(&*self.store, &rows.into_iter().map(Change::from).collect::<Vec<_>>()).await?;
        let guard = self.policies.guard(&by.principal, binding);
        // What a provider only hides stays, and is not asked for a second time.
        let mut kept: HashSet<RecordHandle> = kept.iter().cloned().collect();
        loop {
            let is_older = |row: &RecordRow| {
                let is_theirs = reader.may_read(row) && guard.may_change(row).is_ok();
                is_before(row, by) && is_theirs && !kept.contains(&row.handle)
            };
            let older = self.records.select(binding, what, limits::MAX_ITEMS, is_older).await?;
            let older: Vec<RecordHandle> = older.into_iter().map(|row| row.handle).collect();
            let is_last = older.len() < limits::MAX_ITEMS;
            kept.extend(older.iter().cloned());
            self.forget_for_host(binding, older, Some((&by.principal, source))).await?;
            if is_last {
                return Ok(());
            }
        }
    }

    /// What the host knows of the record that an item is about, before the item is decided: a
    /// decision may move the record.
    pub(crate) async fn row_of(
        &self,
        item: &ReviewItem,
    ) -> Result<Option<RecordRow>, ServiceError> {
        let ReviewSubject::Record(handle) = &item.subject else { return Ok(None) };
        match self.bindings.get(&item.company_id, &item.binding_key) {
            Ok(binding) if binding.id == item.binding_id => {
                Ok(self.records.row(&binding, &handle.provider_record_id).await?)
            }
            _ => Ok(None),
        }
    }

    /// Forgets what an approved record takes the place of. It can be repeated.
    pub(crate) async fn replace_with_approved(
        &self,
        item: &ReviewItem,
        row: Option<RecordRow>,
    ) -> Result<(), ServiceError> {
        let Some(RecordRow { handle, scope, source: Some(source), replaces: Some(by), .. }) = row
        else {
            return Ok(());
        };
        if item.status != ReviewStatus::Approved {
            return Ok(());
        }
        let binding = self.bindings.get(&item.company_id, &item.binding_key)?;
        Ok(self.replace(&binding, &source, &scope, &by, &[handle]).await?)
    }
}
