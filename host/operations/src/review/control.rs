//! Records that a person must see first: hiding them, queueing them, deciding about them.

use crate::Operations;
use crate::review::judge::{Verdict, judge};
use crate::runner::Answered;
use async_recursion::async_recursion as boxed;
use memhost_access::Caller;
use memhost_ports::new_id;
use memhost_queues::ReviewError;
use memhost_registry::{BindingError, NewActivity};
use memhost_store::{Change, StoreError};
use memhost_tenancy::Page;
use memhost_tenancy::ServiceError;
use memhost_types::{
    ActivityAction, Binding, CompanyId, Decision, Delivery, DeliveryStatus, FieldError, HeldChange,
    OperationId, RecordHandle, ReviewDecision, ReviewFilter, ReviewHolder, ReviewId, ReviewItem,
    ReviewPolicy, ReviewStatus, ReviewSubject, Snippet, SourcePayload, limits,
};

/// The largest text that the queue keeps, in bytes; longer ones are cut.
const MAX_QUEUED_TEXT: usize = 16 << 10;

pub(crate) fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// Everything of a record that a reader may be shown: a reader may see the summary in the place of
/// the text.
pub(crate) fn whole(text: &str, summary: Option<&str>) -> String {
    match summary {
        Some(summary) => format!("{text}\n\nSummary: {summary}"),
        None => text.to_owned(),
    }
}

pub(crate) fn queued(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_QUEUED_TEXT)].to_owned()
}

impl Answered<'_> {
    /// Removes what must not be returned. A record that was not judged before is judged here: the
    /// capture that wrote it may not have ended yet.
    pub(crate) async fn hide(&self, found: &mut Vec<Snippet>) -> Result<(), StoreError> {
        let (host, binding) = (self.host, &self.serving.binding);
        // What is held stays held when the policy is removed.
        let policy = binding.policy.review.as_ref();
        if policy.is_none() && !host.reviews.withholds(binding.id) {
            return Ok(());
        }
        let mut shown = Vec::with_capacity(found.len());
        for snippet in found.drain(..) {
            if Box::pin(host.counts(binding, policy, self.id(), &snippet)).await? {
                shown.push(snippet);
            }
        }
        *found = shown;
        Ok(())
    }
}

impl Operations {
    /// How many records to ask for, so that enough are left when hidden ones are removed.
    pub(crate) fn with_hidden(&self, binding: &Binding, wanted: u32) -> u32 {
        if binding.policy.review.is_none() {
            return wanted;
        }
        let hidden = u32::try_from(self.reviews.hidden(binding.id)).unwrap_or(u32::MAX);
        wanted.saturating_add(hidden).min(limits::MAX_PAGE).max(wanted)
    }

    /// Whether a record may be returned. One that may not is put into the queue, once.
    pub(crate) async fn counts(
        &self,
        binding: &Binding,
        policy: Option<&ReviewPolicy>,
        operation_id: OperationId,
        snippet: &Snippet,
    ) -> Result<bool, StoreError> {
        let text = whole(&snippet.text, snippet.summary.as_deref());
        let (digest, record) = (digest(&text), &snippet.handle.provider_record_id);
        let decided = || {
            let standing = self
                .reviews
                .standing(binding.id, record)
                .filter(|standing| standing.digest == digest);
            standing.map(|standing| standing.status == ReviewStatus::Approved)
        };
        if let Some(counts) = decided() {
            return Ok(counts);
        }
        let Some(policy) = policy else { return Ok(true) };
        let verdict = judge(policy, &text, snippet.metadata.as_ref());
        if verdict.reasons.is_empty() {
            return Ok(true);
        }
        let _lock = self.reviews.lock(binding.id, record).await?;
        // Another operation may have queued or approved it meanwhile.
        if let Some(counts) = decided() {
            return Ok(counts);
        }
        let item = self.item(
            binding,
            Some(operation_id),
            &snippet.handle,
            &text,
            verdict,
            ReviewStatus::Pending,
        );
        self.reviews.put(&item).await?;
        Ok(false)
    }

    pub(crate) fn item(
        &self,
        binding: &Binding,
        operation_id: Option<OperationId>,
        handle: &RecordHandle,
        text: &str,
        verdict: Verdict,
        status: ReviewStatus,
    ) -> ReviewItem {
        ReviewItem {
            id: ReviewId(new_id(&*self.clock)),
            company_id: binding.company_id.clone(),
            binding_id: binding.id,
            binding_key: binding.key.clone(),
            subject: ReviewSubject::Record(handle.clone()),
            operation_id,
            kind: verdict.kind,
            confidence: verdict.confidence,
            pii_risk: verdict.pii_risk,
            reasons: verdict.reasons,
            holder: ReviewHolder::Host,
            metadata: None,
            change: None,
            text: queued(text),
            digest: digest(text),
            status,
            created_at: self.clock.now(),
            decided_by: None,
            decided_at: None,
        }
    }

    /// The review item of a capture that is held. `None` if it waits for something else. Its id is
    /// the delivery's.
    pub(crate) fn held_item(&self, delivery: &Delivery) -> Option<ReviewItem> {
        if delivery.status != DeliveryStatus::Held {
            return None;
        }
        let payload = delivery.payload.as_ref();
        let text = payload.and_then(|payload| payload.text_or_turns()).unwrap_or_else(|| {
            payload
                .and_then(|payload| serde_json::to_string(&payload.object).ok())
                .unwrap_or_default()
        });
        Some(ReviewItem {
            id: ReviewId(delivery.id.0),
            company_id: delivery.company_id.clone(),
            binding_id: delivery.binding_id,
            binding_key: delivery.binding_key.clone(),
            subject: ReviewSubject::Delivery(delivery.id),
            operation_id: delivery.operation_id,
            kind: None,
            confidence: None,
            pii_risk: 2,
            holder: ReviewHolder::Host,
            metadata: None,
            change: None,
            reasons: delivery.error.iter().map(|error| error.message.clone()).collect(),
            digest: digest(&text),
            text: queued(&text),
            status: ReviewStatus::Pending,
            created_at: self.clock.now(),
            decided_by: None,
            decided_at: None,
        })
    }

    /// Whether a person approved a held delivery.
    #[boxed]
    pub async fn is_approved(&self, delivery: &Delivery) -> bool {
        let item = self.reviews.get(&delivery.company_id, ReviewId(delivery.id.0)).await;
        item.is_ok_and(|item| item.status == ReviewStatus::Approved)
    }

    /// One page of a company's review queue, newest first.
    ///
    /// # Errors
    /// Where the cursor or the limit is not valid.
    #[boxed]
    pub async fn reviews(
        &self,
        company: &CompanyId,
        filter: &ReviewFilter,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<Page<ReviewItem>, ServiceError> {
        let page = self.tenancy.page_of("reviews", company, filter, cursor, limit)?;
        let mut found = self.reviews.list(company, filter, page.from(), page.limit).await?;
        found.0 = found.0.into_iter().map(|item| self.shown(item)).collect();
        Ok(self.tenancy.sealed(&page, found))
    }

    /// One item of the review queue.
    ///
    /// # Errors
    /// Where the company has none of this id.
    #[boxed]
    pub async fn review(
        &self,
        company: &CompanyId,
        id: ReviewId,
    ) -> Result<ReviewItem, ServiceError> {
        Ok(self.shown(self.reviews.get(company, id).await?))
    }

    /// An item with the id that everybody outside knows its binding by.
    fn shown(&self, item: ReviewItem) -> ReviewItem {
        ReviewItem { binding_id: self.bindings.known_as(&item.company_id, item.binding_id), ..item }
    }

    /// Decides about an item that waits. The same decision twice counts once.
    ///
    /// # Errors
    /// Where there is none of this id, it was decided differently, or the provider fails.
    #[boxed]
    pub async fn decide(
        &self,
        caller: &Caller,
        company: &CompanyId,
        id: ReviewId,
        decision: ReviewDecision,
    ) -> Result<ReviewItem, ServiceError> {
        decision.check()?;
        match (decision.decision, &decision.text) {
            (Decision::Edit, None) => {
                return Err(FieldError::new("text", "is missing; an edit needs it").into());
            }
            (Decision::Approve | Decision::Reject, Some(_)) => {
                return Err(FieldError::new("text", "goes with the decision `edit` only").into());
            }
            _ => {}
        }
        let _lock = self.reviews.lock_item(id).await?;
        let before = self.reviews.get(company, id).await?;
        let status = match decision.decision {
            Decision::Approve | Decision::Edit => ReviewStatus::Approved,
            Decision::Reject => ReviewStatus::Rejected,
        };
        if before.status != ReviewStatus::Pending {
            let is_same = before.status == status
                && decision.text.as_ref().is_none_or(|text| digest(text) == before.digest);
            if !is_same {
                return Err(ReviewError::Decided { id: id.0, status: before.status }.into());
            }
            // The host may have failed after the decision.
            let row = self.row_of(&before).await?;
            self.replace_with_approved(&before, row).await?;
            return Ok(self.shown(before));
        }
        // Another binding may have the key by now, and its records are not meant.
        let of_record = matches!(before.subject, ReviewSubject::Record(_));
        if of_record && self.bindings.get(company, &before.binding_key)?.id != before.binding_id {
            let key = before.binding_key.clone();
            return Err(BindingError::NotFound { company: company.clone(), key }.into());
        }
        let mut after = ReviewItem {
            status,
            decided_by: Some(caller.principal().to_string()),
            decided_at: Some(self.clock.now()),
            ..before.clone()
        };
        if let Some(text) = &decision.text {
            (after.text, after.digest) = (queued(text), digest(text));
        }
        let removes_text = !matches!(decision.decision, Decision::Approve);
        if removes_text {
            // On disk first: the provider's operation relies on it.
            self.tenancy.note_forgetting().await?;
        }
        let row = self.row_of(&before).await?;
        let mut changes: Vec<Change> = Vec::new();
        match &before.subject {
            ReviewSubject::Record(handle) if before.holder == ReviewHolder::Provider => {
                self.send_decision(caller, handle, &decision, &mut after).await?;
            }
            ReviewSubject::Record(handle) => {
                if let Some(text) = self.carry_out(caller, &before, handle, &decision).await? {
                    // As the provider has it: that is what the decision holds for.
                    (after.text, after.digest) = (queued(&text), digest(&text));
                }
            }
            ReviewSubject::Delivery(delivery) => {
                let held = self.deliveries.get(company, delivery.0).await?;
                let mut released = held.clone();
                if let (Some(text), Some(payload)) = (&decision.text, &mut released.payload) {
                    // What the person has not seen may repeat what was taken out.
                    *payload =
                        SourcePayload { text: Some(text.clone()), ..SourcePayload::default() };
                    released.metadata = None;
                }
                (released.status, released.due_at) = match status {
                    ReviewStatus::Rejected => (DeliveryStatus::Discarded, None),
                    _ => (DeliveryStatus::Pending, Some(self.clock.now())),
                };
                if status == ReviewStatus::Rejected {
                    (released.payload, released.metadata) = (None, None);
                    released.finished_at = Some(self.clock.now());
                }
                changes.extend(self.deliveries.changes(&held, &released).await?);
            }
        }
        if after.status == ReviewStatus::Rejected {
            after = after.without_text();
        } else {
            after.change = after.change.map(|_| HeldChange::Gone);
            if decision.text.is_some() {
                // It may repeat what was taken out of the text.
                after.metadata = None;
            }
        }
        // The text of a record that was forgotten or replaced is gone from the item already.
        let present = self.reviews.get(company, id).await?;
        changes.push(self.reviews.replace(&present, &after).await?);
        if removes_text {
            // A compaction may have ended meanwhile.
            changes.extend(self.tenancy.forgetting()?);
        }
        let entry =
            NewActivity::new(caller.principal(), ActivityAction::ReviewDecided, id.0.to_string());
        // The activity log does not contain the text.
        let entry = entry.with(Some(&before.status), Some(&decision.decision));
        self.activity.record_with(company, entry, changes).await?;
        self.reviews.apply(&after);
        self.deliveries.moved();
        self.wake.notify_one();
        self.replace_with_approved(&after, row).await?;
        Ok(self.shown(after))
    }
}
