//! What a provider itself holds until a person decides: shown in the host's queue beside what the host holds, and decided
//! there, so that a person has one place to look. The provider is told through its interface `review`.

use std::sync::Arc;

use crate::operations::pipeline::closed;

use crate::operations::pipeline::end;

use crate::Service;
use crate::access::Caller;
use crate::error::ServiceError;
use crate::operations::pipeline::refuse;
use crate::operations::record::Completion;
use crate::review;
use crate::review::Standing;
use crate::review::control::digest;
use crate::review::control::queued;
use crate::review::control::whole;
use crate::versions::serving::Serving;
use memhost_sandbox::OptionalInterface;
use memhost_types::{
    JsonObject, OperationErrorCode, OperationId, OperationKind, Pages, RecordHandle, RecordWrite, ReviewDecision,
    ReviewHolder, ReviewItem, ReviewPolicy, ReviewStatus, Scope, Usage,
};

/// Records that one look at what waits reads at most: what came later is seen when some of them are decided.
const MOST_PENDING: usize = 1_000;
/// Records of one page of it.
const PENDING_PAGE: u32 = 100;
/// Metadata that the queue keeps, in bytes of JSON; larger ones are not shown.
const MAX_QUEUED_METADATA: usize = 16 << 10;

impl Service {
    /// Puts what waits at the provider into the queue, as a part of the operation after which it may have become more.
    /// A provider that cannot say what waits is asked again after the next one.
    pub(crate) async fn queue_provider_review(
        &self,
        serving: &Arc<Serving>,
        scope: &Scope,
        operation_id: OperationId,
    ) -> Result<Vec<Usage>, ServiceError> {
        let mut used = Vec::new();
        if !serving.plugin.component.exports(OptionalInterface::Review) {
            return Ok(used);
        }
        let (mut pages, mut seen) = (Pages::default(), 0);
        while let Some(cursor) = pages.next().filter(|_| seen < MOST_PENDING) {
            let page = match serving.instances.pending(scope, cursor.as_deref(), PENDING_PAGE).await {
                Ok(answer) => {
                    used.extend(answer.embedded);
                    answer.value
                }
                Err(failure) => {
                    used.extend(failure.embedded);
                    tracing::warn!(error = %failure.error, binding = %serving.binding.key, "what waits is not known");
                    break;
                }
            };
            used.extend(page.usage);
            seen += page.items.len();
            for snippet in &page.items {
                let text = whole(&snippet.text, snippet.summary.as_deref());
                let standing = self.reviews.standing(serving.binding.id, &snippet.handle.provider_record_id);
                let is_queued =
                    |known: &Standing| known.status == ReviewStatus::Pending && known.digest == digest(&text);
                if standing.as_ref().is_some_and(is_queued) {
                    continue;
                }
                let mut verdict = review::judge(&ReviewPolicy::default(), &text, snippet.metadata.as_ref());
                verdict.reasons.insert(0, "the provider holds it until a person approves it".to_owned());
                let item = self.item(
                    &serving.binding,
                    Some(operation_id),
                    &snippet.handle,
                    &text,
                    verdict,
                    ReviewStatus::Pending,
                );
                let metadata = snippet.metadata.clone().filter(is_small);
                self.reviews.put(&ReviewItem { holder: ReviewHolder::Provider, metadata, ..item }).await?;
            }
            pages.go_on(page.next);
        }
        Ok(used)
    }

    /// Tells the provider what was decided, as an operation of its own, and writes into the item what came of it. What
    /// the provider no longer has, because it expired or was forgotten, cannot count any more: it ends as rejected.
    pub(crate) async fn send_decision(
        &self,
        caller: &Caller,
        handle: &RecordHandle,
        decision: &ReviewDecision,
        item: &mut ReviewItem,
    ) -> Result<(), ServiceError> {
        let mut scope = self.scope_of(item).await?;
        let mut open = self.begin(caller, OperationKind::Review, &mut scope).await?;
        let id = open.id().map_err(closed)?;
        let serving = match self.admit(&mut open, Ok(()), &scope, Some(&item.binding_key)).await {
            Ok(serving) => serving,
            Err(refusal) => return refuse(open, refusal).await,
        };
        open.write_intent(Vec::new()).await.map_err(ServiceError::Audit)?;
        let edited = decision.text.as_ref().map(|text| RecordWrite {
            id: None,
            text: text.clone(),
            summary: None,
            metadata: item.metadata.clone(),
        });
        let (at, record, edited) = (&scope, &handle.provider_record_id, edited.as_ref());
        let called = self
            .run(&mut open, serving, |serving| async move {
                serving.instances.decide(at, record, decision.decision, edited).await
            })
            .await;
        let decided = end(open, called, |answer| Completion {
            records: answer.iter().map(|snippet| snippet.handle.clone()).collect(),
            record_count: usize::from(answer.is_some()),
            ..Completion::default()
        })
        .await;
        match decided {
            Ok(Some(snippet)) => {
                let text = whole(&snippet.text, snippet.summary.as_deref());
                (item.text, item.digest) = (queued(&text), digest(&text));
            }
            Ok(None) => {}
            Err(ServiceError::Operation { error, .. }) if error.code == OperationErrorCode::NotFound => {
                item.status = ReviewStatus::Rejected;
                item.reasons.push(format!("the provider no longer has it, as the operation {id} says"));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn is_small(metadata: &JsonObject) -> bool {
    serde_json::to_vec(metadata).is_ok_and(|json| json.len() <= MAX_QUEUED_METADATA)
}
