//! What the host itself has of a record's text: in review items, in the snapshots and logs of
//! operations, in answers that are kept for idempotency keys, and in records of an import that
//! wait. It goes when the record is forgotten or replaced.

use std::collections::HashSet;

use crate::Operations;
use crate::idempotency;
use memhost_records::Reader;
use memhost_store::{self as store, StoreError};
use memhost_types::{
    Binding, Operation, OperationFilter, OperationId, Outcome, RecordHandle, RecordId, ReviewItem,
    ReviewStatus, Scope, SourceSelector,
};

/// Operations that are read at a time.
const PAGE: usize = 200;

/// Records to forget beside those that are known.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'a> {
    /// Nothing.
    None,
    /// Records of these sources.
    Sources(&'a [SourceSelector]),
    /// What was for a scope and a reader may read, of operations with a lower number than this one.
    Scope(&'a Scope, &'a Reader, OperationId),
}

impl Origin<'_> {
    fn is_none(self) -> bool {
        matches!(self, Self::None | Self::Sources([]))
    }

    fn is_of(self, operation: &Operation) -> bool {
        match self {
            Self::None => false,
            Self::Sources(sources) => operation
                .source
                .as_ref()
                .is_some_and(|source| sources.iter().any(|one| one.matches(source))),
            Self::Scope(scope, reader, before) => {
                operation.id.sequence() < before.sequence()
                    && scope.covers(&operation.scope)
                    && reader.may_forget_of(operation.visibility, &operation.scope)
            }
        }
    }
}

impl Operations {
    /// Removes what the host has of the text of records that their provider has forgotten or
    /// replaced. It can be repeated.
    ///
    /// # Errors
    /// Where the store fails. Some of it is removed then.
    pub(crate) async fn remove_traces(
        &self,
        binding: &Binding,
        gone: &[RecordHandle],
    ) -> Result<(), StoreError> {
        self.remove_traces_of(binding, gone, Origin::None).await
    }

    /// The same, and what it has of what came from sources or was for a scope.
    ///
    /// # Errors
    /// As [`Operations::remove_traces`].
    pub(crate) async fn remove_traces_of(
        &self,
        binding: &Binding,
        gone: &[RecordHandle],
        origin: Origin<'_>,
    ) -> Result<(), StoreError> {
        let ids: HashSet<&RecordId> =
            gone.iter().map(|handle| &handle.provider_record_id).collect();
        if ids.is_empty() && origin.is_none() {
            return Ok(());
        }
        self.clear_reviews(binding, &ids, origin).await?;
        let is_about = |operation: &Operation| {
            origin.is_of(operation) || !ids.is_empty() && touches(operation, &ids)
        };
        self.clear_operations(binding, is_about).await?;
        idempotency::clear(&*self.store, &binding.company_id).await
    }

    /// Takes records that wait for a decision about an import out of the queue. Answers which.
    pub(crate) async fn forget_waiting(
        &self,
        binding: &Binding,
        gone: &[RecordHandle],
    ) -> Result<HashSet<RecordId>, StoreError> {
        if !self.waiting.has(binding) {
            return Ok(HashSet::new());
        }
        self.waiting.forget_records(binding, gone).await
    }

    async fn clear_reviews(
        &self,
        binding: &Binding,
        ids: &HashSet<&RecordId>,
        origin: Origin<'_>,
    ) -> Result<(), StoreError> {
        if !self.reviews.may_be_about(binding.id, ids, !origin.is_none()) {
            return Ok(());
        }
        let (mut texts, mut found) = (self.reviews.texts(&binding.company_id), Vec::new());
        while let Some(item) = texts.next().await? {
            let is_of = |handle: &RecordHandle| ids.contains(&handle.provider_record_id);
            if item.binding_id == binding.id
                && (item.subject.record().is_some_and(is_of)
                    || self.is_review_of(&item, origin).await?)
            {
                found.push(item);
            }
        }
        drop(texts);
        let mut seen = HashSet::new();
        for item in found {
            let mut without = item.clone().without_text();
            if without.status == ReviewStatus::Pending {
                without.status = ReviewStatus::Rejected;
                without.decided_by = Some("forgotten before a decision".to_owned());
                without.decided_at = Some(self.clock.now());
            }
            // Somebody who decides about it at this moment removes its text, too.
            if store::write(&*self.store, &[self.reviews.replace(&item, &without).await?]).await? {
                // The newest item about a record counts, and it comes first.
                if without.stands() && seen.insert(without.subject.record().cloned()) {
                    self.reviews.apply(&without);
                }
            }
        }
        Ok(())
    }

    /// Whether an item is about a change that came from these sources, or that was asked for in
    /// this scope.
    async fn is_review_of(
        &self,
        item: &ReviewItem,
        origin: Origin<'_>,
    ) -> Result<bool, StoreError> {
        match (origin, item.operation_id) {
            (Origin::Sources(sources), _) => Ok(item
                .source()
                .is_some_and(|source| sources.iter().any(|one| one.matches(source)))),
            (Origin::Scope(..), Some(id)) if item.change.is_some() => {
                let asked = self.store.operation(&item.company_id, id).await?;
                Ok(asked.is_some_and(|operation| origin.is_of(&operation)))
            }
            _ => Ok(false),
        }
    }

    async fn clear_operations(
        &self,
        binding: &Binding,
        is_about: impl Fn(&Operation) -> bool,
    ) -> Result<(), StoreError> {
        let filter = OperationFilter {
            binding_key: Some(binding.key.clone()),
            keeps_text: true,
            ..OperationFilter::default()
        };
        let (mut before, mut is_changed) = (None, false);
        loop {
            let page = self.store.operations(&binding.company_id, &filter, before, PAGE).await?;
            for mut operation in page.operations {
                if operation.outcome != Outcome::InProgress && is_about(&operation) {
                    operation.remove_text();
                    drop(self.store.write_operation(operation.into(), Vec::new()));
                    is_changed = true;
                }
            }
            match page.next_before {
                Some(next) => before = Some(next),
                None if is_changed => return self.store.commit().await,
                None => return Ok(()),
            }
        }
    }
}

/// Whether an operation's text may be about one of the records. A list of records that was cut may
/// have contained it.
fn touches(operation: &Operation, ids: &HashSet<&RecordId>) -> bool {
    let is_one = |handle: &RecordHandle| ids.contains(&handle.provider_record_id);
    let is_cut = operation.records.len() >= operation.kind.recorded_handles();
    is_cut
        || operation.records.iter().any(is_one)
        || operation
            .payload
            .iter()
            .any(|payload| ids.iter().any(|id| payload.text.contains(id.as_str())))
}
