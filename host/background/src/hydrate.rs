//! Recall before a run, within its deadline.

use std::sync::Arc;
use std::time::Duration;

use crate::Background;
use crate::recall_text::rendered;
use memhost_access::Caller;
use memhost_executor::in_turn;
use memhost_operations::ForHook;
use memhost_tenancy::ServiceError;
use memhost_types::{
    ContextBlock, ContextBundle, DEFAULT_HYDRATE_MS, DEFAULT_TOKEN_BUDGET, Delivery,
    DeliveryStatus, HookEvent, Intent, QueryRequest, Recall, Recalled, Snippet, limits,
};

impl Background {
    /// Recall: all bindings are asked at the same time, and the caller waits no longer than the
    /// deadline. Answers the deliveries as they are then, and the block for the run.
    pub(crate) async fn hydrate(
        self: Arc<Self>,
        event: HookEvent,
        accepted: Vec<(Delivery, bool)>,
    ) -> Result<(Vec<Delivery>, ContextBlock), ServiceError> {
        let deadline =
            Duration::from_millis(u64::from(event.deadline_ms.unwrap_or(DEFAULT_HYDRATE_MS)));
        let until = tokio::time::Instant::now() + deadline;
        let mut asked = Vec::new();
        for (delivery, _) in accepted {
            let (service, event) = (Arc::clone(&self), event.clone());
            // Also where the event was delivered before: what was found then is not kept, and may
            // be forgotten by now.
            asked.push(tokio::spawn(async move {
                let (after, recall) = service.recall(&event, &delivery, until, deadline).await;
                (delivery, after, recall)
            }));
        }
        let mut recalled = Vec::with_capacity(asked.len());
        for answer in asked {
            recalled.push(answer.await.map_err(ServiceError::host)?);
        }
        let found: Vec<(&str, &Recall)> = recalled
            .iter()
            .map(|(_, delivery, recall)| (delivery.binding_key.as_str(), recall))
            .collect();
        let budget = event.token_budget.unwrap_or(DEFAULT_TOKEN_BUDGET);
        let (context, omitted) = in_turn(event.scope.company_id.as_str(), usize::MAX, async {
            rendered(&found, budget)
        })
        .await;
        let mut writing = Vec::with_capacity(recalled.len());
        for ((before, mut after, recall), omitted) in recalled.into_iter().zip(omitted) {
            after.recall = Some(Recalled::of(&recall, &omitted));
            let service = Arc::clone(&self);
            writing.push(tokio::spawn(async move {
                // If two ask at the same time, the first answer is kept.
                service.deliveries.write(&before, &after).await.map(|()| after)
            }));
        }
        let mut deliveries = Vec::with_capacity(writing.len());
        for written in writing {
            deliveries.push(written.await.map_err(ServiceError::host)??);
        }
        Ok((deliveries, context))
    }

    async fn recall(
        self: &Arc<Self>,
        event: &HookEvent,
        before: &Delivery,
        until: tokio::time::Instant,
        deadline: Duration,
    ) -> (Delivery, Recall) {
        let query = QueryRequest {
            binding_key: Some(before.binding_key.clone()),
            scope: event.scope.clone(),
            query: event.query.clone().unwrap_or_default(),
            top_k: event.top_k,
            intent: Intent::AgentPreamble,
            metadata_filter: None,
            token_budget: None,
            filter: None,
        };
        // The deadline ends the waiting and not the query: what the provider does and costs is
        // recorded.
        let service = Arc::clone(self);
        let hook = ForHook {
            context: before.hook.clone(),
            sender: before.principal.clone(),
            metadata: event.metadata.clone(),
        };
        let asking = tokio::spawn(async move {
            service.operations.query_for(&Caller::worker(), query, Some(hook)).await
        });
        let asked = tokio::time::timeout_at(until, asking).await;
        let asked =
            asked.map(|joined| joined.unwrap_or_else(|error| Err(ServiceError::host(error))));
        let (recall, operation_id) = match asked {
            Ok(Ok(bundle)) => {
                let operation_id = bundle.operation_id;
                (bounded(bundle), Some(operation_id))
            }
            Ok(Err(error)) => {
                let operation_id = match &error {
                    ServiceError::Operation { operation_id, .. } => Some(*operation_id),
                    _ => None,
                };
                (degraded(error.to_string()), operation_id)
            }
            Err(_) => (
                degraded(format!(
                    "it took longer than the {} ms of its deadline",
                    deadline.as_millis()
                )),
                None,
            ),
        };
        let (now, why) = (self.clock.now(), recall.degraded.as_deref());
        self.oplog.recent.recalled(&before.company_id, &before.binding_key, why, now);
        let after = Delivery {
            status: if why.is_some() {
                DeliveryStatus::Degraded
            } else {
                DeliveryStatus::Delivered
            },
            attempts: before.attempts + 1,
            due_at: None,
            finished_at: Some(now),
            operation_id: before.operation_id.or(operation_id),
            last_operation_id: operation_id.or(before.last_operation_id),
            metadata: None,
            ..before.clone()
        };
        (after, recall)
    }
}

/// The answered part of recall.
fn bounded(bundle: ContextBundle) -> Recall {
    let ContextBundle { mut snippets, profile_summary, degraded: missing, .. } = bundle;
    let mut bytes = 0;
    let size =
        |snippet: &Snippet| snippet.text.len() + snippet.summary.as_ref().map_or(0, String::len);
    let fit = snippets.iter().take_while(|snippet| {
        bytes += size(snippet);
        bytes <= limits::MAX_PAGE_BYTES
    });
    let (kept, found) = (fit.count(), snippets.len());
    snippets.truncate(kept);
    let too_large = (kept < found).then(|| {
        format!(
            "{} of {found} records left out: together they are larger than 4 MiB; ask for fewer",
            found - kept
        )
    });
    let reasons: Vec<String> = missing.into_iter().chain(too_large).collect();
    let degraded = Some(reasons.join("; ")).filter(|reasons| !reasons.is_empty());
    Recall { snippets, profile_summary, degraded }
}

fn degraded(reason: String) -> Recall {
    Recall { degraded: Some(reason), ..Recall::default() }
}
