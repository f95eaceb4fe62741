//! Changes of records that are there. Where the policy would hold what a change makes, the host
//! keeps the change in the queue, and the provider hears nothing of it: the record stays as it is
//! and is found until a person approves the change. So nobody can take an approved record away by
//! changing it.

use std::sync::Arc;

use crate::Operations;
use crate::idempotency;
use crate::review::control::whole;
use crate::review::judge::{Verdict, judge};
use crate::review::written::{Author, Decided};
use crate::runner::Answered;
use memhost_access::Caller;
use memhost_store::StoreError;
use memhost_tenancy::ServiceError;
use memhost_types::{
    Binding, CorrectRequest, CorrectionPatch, Decision, ForgetRequest, HeldChange, InReview,
    OperationErrorCode, OperationId, OperationKind, RecordHandle, RecordId, RecordWrite, Refusal,
    ReviewDecision, ReviewItem, ReviewStatus, Scope, UpsertRequest,
};

/// The refusal for the caller of a change that waits.
pub(crate) fn waits() -> Refusal {
    let message = "a person must approve the change first, and the record stays as it is until \
                   then; `memhost review \
                   list` shows it";
    Refusal::new(OperationErrorCode::ReviewRequired, message)
}

/// The caller's view of an item.
pub(crate) fn in_review(item: &ReviewItem) -> Option<InReview> {
    let handle = item.subject.record()?.clone();
    Some(InReview { handle, review_id: item.id, reason: item.reasons.join("; ") })
}

impl Operations {
    /// Why a change of a record must wait. `None` if it may be made. What nobody is answered yet
    /// may be changed: it is judged afterwards. `write` is the record as it is to be, if that is
    /// known.
    pub(crate) async fn holds_change(
        &self,
        binding: &Binding,
        author: &Author,
        record: &RecordId,
        write: Option<&RecordWrite>,
    ) -> Result<Option<Verdict>, StoreError> {
        let Some(policy) = binding.policy.review.as_ref().filter(|_| *author == Author::Judged)
        else {
            return Ok(None);
        };
        let standing = self.reviews.standing(binding.id, record).map(|standing| standing.status);
        let is_there = match standing {
            Some(status) => status == ReviewStatus::Approved,
            None => self.records.row(binding, record).await?.is_some(),
        };
        if !is_there {
            return Ok(None);
        }
        let mut verdict = match write {
            Some(write) => judge(
                policy,
                &whole(&write.text, write.summary.as_deref()),
                write.metadata.as_ref(),
            ),
            None => judge(policy, "", None),
        };
        match write {
            None => verdict
                .reasons
                .push("what the provider makes of an instruction is not known before".to_owned()),
            // The metadata stays, and may be the reason why it was held.
            Some(write)
                if standing.is_some() && write.metadata.is_none() && verdict.reasons.is_empty() =>
            {
                verdict.reasons.push("a person has approved the record as it is".to_owned());
            }
            Some(_) => {}
        }
        Ok(Some(verdict).filter(|verdict| !verdict.reasons.is_empty()))
    }

    /// The item of the queue for a change that waits.
    pub(crate) fn change_item(
        &self,
        binding: &Binding,
        operation_id: OperationId,
        handle: &RecordHandle,
        verdict: Verdict,
        change: HeldChange,
    ) -> ReviewItem {
        let of = |write: &RecordWrite| whole(&write.text, write.summary.as_deref());
        let text = match &change {
            HeldChange::Record(held) => of(&held.write),
            HeldChange::Correction(patch) => match (&patch.record, &patch.instruction) {
                (Some(write), _) => of(write),
                (None, instruction) => instruction.clone().unwrap_or_default(),
            },
            HeldChange::Gone => String::new(),
        };
        let item =
            self.item(binding, Some(operation_id), handle, &text, verdict, ReviewStatus::Pending);
        ReviewItem { change: Some(change), ..item }
    }

    /// Applies a decision to a record of the provider. Answers the text that the provider has then,
    /// where it was changed and could be read.
    pub(crate) async fn carry_out(
        &self,
        caller: &Caller,
        item: &ReviewItem,
        handle: &RecordHandle,
        decision: &ReviewDecision,
    ) -> Result<Option<String>, ServiceError> {
        let (binding_key, scope) = (Some(item.binding_key.clone()), self.scope_of(item).await?);
        let decided = Arc::new(Decided::about(handle));
        let author = Author::deciding(caller, &decided);
        let correct = |patch: CorrectionPatch| CorrectRequest {
            binding_key: binding_key.clone(),
            scope: scope.clone(),
            handle: handle.clone(),
            patch,
        };
        match (&decision.text, decision.decision, &item.change) {
            (_, Decision::Reject, Some(_)) => self.give_up_change(item).await?,
            (_, Decision::Reject, None) => {
                let handles = vec![handle.clone()];
                self.forget(caller, ForgetRequest { binding_key, scope, handles }).await?;
            }
            (Some(text), ..) => {
                let record = RecordWrite { text: text.clone(), ..RecordWrite::default() };
                let patch = CorrectionPatch { instruction: None, record: Some(record.clone()) };
                match self.correct_as(caller, correct(patch), author.clone()).await {
                    Err(ServiceError::Operation { error, .. })
                        if error.code == OperationErrorCode::Unsupported =>
                    {
                        let record =
                            RecordWrite { id: Some(handle.provider_record_id.clone()), ..record };
                        let upsert = UpsertRequest {
                            binding_key,
                            scope,
                            source: None,
                            records: vec![record],
                            visibility: None,
                        };
                        self.upsert_as(caller, upsert, author).await?;
                    }
                    answered => drop(answered?),
                }
            }
            (None, _, Some(HeldChange::Correction(patch))) => {
                self.correct_as(caller, correct((**patch).clone()), author).await?;
            }
            (None, _, Some(HeldChange::Record(held))) => {
                let (source, visibility) = (held.source.clone(), held.visibility);
                let records = vec![held.write.clone()];
                let upsert = UpsertRequest { binding_key, scope, source, records, visibility };
                self.upsert_as(caller, upsert, author).await?;
            }
            (None, _, Some(HeldChange::Gone) | None) => {}
        }
        Ok(decided.seen())
    }

    /// Removes what the host has of the text of a change that was rejected. Its record is not
    /// touched.
    async fn give_up_change(&self, item: &ReviewItem) -> Result<(), ServiceError> {
        if let Some(id) = item.operation_id
            && let Some(mut operation) = self.store.operation(&item.company_id, id).await?
            && operation.keeps_text()
        {
            operation.remove_text();
            drop(self.store.write_operation(operation.into(), Vec::new()));
            self.store.commit().await?;
        }
        Ok(idempotency::clear(&*self.store, &item.company_id).await?)
    }

    /// The scope of the operation that brought an item; the company's where that is gone, or was an
    /// import, which brings records of any scope.
    pub(crate) async fn scope_of(&self, item: &ReviewItem) -> Result<Scope, ServiceError> {
        let operation = match item.operation_id {
            Some(id) => self.store.operation(&item.company_id, id).await?,
            None => None,
        };
        let narrow = operation.filter(|operation| operation.kind != OperationKind::Import);
        Ok(narrow
            .map_or_else(|| Scope::company(item.company_id.clone()), |operation| operation.scope))
    }
}

impl Answered<'_> {
    /// Those of some records that wait for a person.
    pub(crate) async fn in_review(
        &self,
        records: &[RecordHandle],
    ) -> Result<Vec<InReview>, StoreError> {
        let (host, binding) = (self.host, &self.serving.binding);
        let mut found = Vec::new();
        if !host.reviews.withholds(binding.id) {
            return Ok(found);
        }
        for handle in records {
            let standing = host.reviews.standing(binding.id, &handle.provider_record_id);
            let Some(standing) =
                standing.filter(|standing| standing.status == ReviewStatus::Pending)
            else {
                continue;
            };
            let item = host.reviews.find(&binding.company_id, standing.id).await?;
            found.extend(item.as_ref().and_then(in_review));
        }
        Ok(found)
    }
}
