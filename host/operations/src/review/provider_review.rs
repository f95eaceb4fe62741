//! Records that a provider itself holds until a person decides. The host's queue shows them beside
//! its own, so that a person decides everything in one place. The provider is told through its
//! interface `review`.

use crate::Operations;
use crate::review::control::{digest, queued, whole};
use crate::review::judge::judge;
use crate::runner::{Answered, Step, Target};
use memhost_access::Caller;
use memhost_oplog::operation::Completion;
use memhost_registry::versions::Serving;
use memhost_sandbox::{Answer, Failure, OptionalInterface};
use memhost_store::StoreError;
use memhost_tenancy::ServiceError;
use memhost_types::{
    Decision, JsonObject, OperationErrorCode, OperationId, OperationKind, Pages, RecordHandle,
    RecordId, RecordWrite, Refusal, ReviewDecision, ReviewHolder, ReviewItem, ReviewPolicy,
    ReviewStatus, Scope, Snippet,
};

/// The most records that are read at a time. Further ones are read when some of these are decided.
const MOST_PENDING: usize = 1_000;
/// Records of one page of them.
const PENDING_PAGE: u32 = 100;
/// The largest metadata that the queue keeps, in bytes of JSON; larger ones are not shown.
const MAX_QUEUED_METADATA: usize = 16 << 10;

impl Answered<'_> {
    /// Puts what the provider holds into the queue, as a part of an operation that may have added
    /// to it. A provider that fails is asked again after the next operation.
    pub(crate) async fn queue_provider_review(&mut self, scope: &Scope) -> Result<(), StoreError> {
        let serving = self.serving;
        if !serving.plugin.component.exports(OptionalInterface::Review) {
            return Ok(());
        }
        let (mut pages, mut seen) = (Pages::default(), 0);
        while seen < MOST_PENDING
            && let Some(cursor) = pages.next()
        {
            let page = match serving.instances.pending(scope, cursor.as_deref(), PENDING_PAGE).await
            {
                Ok(answer) => {
                    self.ending.add_metered(answer.metered);
                    answer.value
                }
                Err(failure) => {
                    self.ending.add_metered(failure.metered);
                    tracing::warn!(error = %failure.error, binding = %serving.binding.key, "the \
                        provider could not list what it holds");
                    break;
                }
            };
            self.ending.add_usage(page.usage);
            // An empty page counts, too: a list that never ends is left.
            seen += page.items.len().max(1);
            for snippet in &page.items {
                self.queue_one(snippet).await?;
            }
            pages.go_on(page.next);
        }
        Ok(())
    }

    async fn queue_one(&self, snippet: &Snippet) -> Result<(), StoreError> {
        let (host, binding) = (self.host, &self.serving.binding);
        let text = whole(&snippet.text, snippet.summary.as_deref());
        let record = &snippet.handle.provider_record_id;
        let _lock = host.reviews.lock(binding.id, record).await?;
        let standing = host.reviews.standing(binding.id, record);
        if standing.is_some_and(|known| {
            known.status == ReviewStatus::Pending && known.digest == digest(&text)
        }) {
            return Ok(());
        }
        let mut verdict = judge(&ReviewPolicy::default(), &text, snippet.metadata.as_ref());
        // The provider's rules decided, and the host does not know them: its own thresholds would
        // name a number that decides nothing.
        verdict.reasons = vec!["the provider holds it until a person approves it".to_owned()];
        let item = host.item(
            binding,
            Some(self.id()),
            &snippet.handle,
            &text,
            verdict,
            ReviewStatus::Pending,
        );
        let metadata = snippet.metadata.clone().filter(is_small);
        host.reviews.put(&ReviewItem { holder: ReviewHolder::Provider, metadata, ..item }).await
    }
}

impl Operations {
    /// Tells the provider what was decided, as an operation of its own, and writes the result into
    /// the item. A record that the provider no longer has, because it expired or was forgotten,
    /// ends as rejected.
    pub(crate) async fn send_decision(
        &self,
        caller: &Caller,
        handle: &RecordHandle,
        decision: &ReviewDecision,
        item: &mut ReviewItem,
    ) -> Result<(), ServiceError> {
        let edited = decision.text.as_ref().map(|text| RecordWrite {
            text: text.clone(),
            metadata: item.metadata.clone(),
            ..RecordWrite::default()
        });
        let record = &handle.provider_record_id;
        let mut step = Decide {
            scope: self.scope_of(item).await?,
            item,
            record,
            decision: decision.decision,
            edited,
        };
        match self.operate(caller, &mut step).await {
            Ok(Some(snippet)) => {
                let text = whole(&snippet.text, snippet.summary.as_deref());
                (item.text, item.digest) = (queued(&text), digest(&text));
            }
            Ok(None) => {}
            Err(ServiceError::Operation { operation_id, error, .. })
                if error.code == OperationErrorCode::NotFound =>
            {
                item.status = ReviewStatus::Rejected;
                item.reasons.push(format!(
                    "the provider no longer has it, as the operation {operation_id} says"
                ));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

struct Decide<'a> {
    scope: Scope,
    item: &'a ReviewItem,
    record: &'a RecordId,
    decision: Decision,
    edited: Option<RecordWrite>,
}

impl Step for Decide<'_> {
    const KIND: OperationKind = OperationKind::Review;
    type Answer = Option<Snippet>;
    type Response = Option<Snippet>;

    fn target(&mut self) -> Target<'_> {
        (&mut self.scope, Some(&self.item.binding_key))
    }

    async fn call(
        &self,
        serving: &Serving,
        _: OperationId,
    ) -> Result<Answer<Option<Snippet>>, Failure> {
        serving
            .instances
            .decide(&self.scope, self.record, self.decision, self.edited.as_ref())
            .await
    }

    fn completion(&self, answer: &Option<Snippet>) -> Completion {
        Completion::records(answer.iter().map(|snippet| snippet.handle.clone()).collect(), &[])
    }

    async fn finish(
        &mut self,
        answered: &mut Answered<'_>,
        answer: Option<Snippet>,
    ) -> Result<Option<Snippet>, Refusal> {
        if self.decision != Decision::Approve {
            let before = RecordHandle {
                provider_key: answered.serving.binding.provider_key.clone(),
                provider_record_id: self.record.clone(),
            };
            answered.host.remove_traces(&answered.serving.binding, &[before]).await?;
        }
        Ok(answer)
    }
}

fn is_small(metadata: &JsonObject) -> bool {
    memhost_executor::to_json(metadata).is_ok_and(|json| json.len() <= MAX_QUEUED_METADATA)
}
