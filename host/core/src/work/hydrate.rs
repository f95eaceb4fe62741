//! Recall before a run, within its deadline.

use std::sync::Arc;
use std::time::Duration;

use crate::Service;
use crate::access::Caller;
use crate::error::ServiceError;
use memhost_types::{
    DEFAULT_HYDRATE_MS, Delivery, DeliveryStatus, HookEvent, Intent, QueryRequest, Recall, Snippet, limits,
};

impl Service {
    /// Recall: all bindings are asked at the same time, and the caller waits no longer than the deadline.
    pub(crate) async fn hydrate(
        self: &Arc<Self>,
        event: &HookEvent,
        accepted: Vec<(Delivery, bool)>,
    ) -> Result<Vec<Delivery>, ServiceError> {
        let deadline = Duration::from_millis(u64::from(event.deadline_ms.unwrap_or(DEFAULT_HYDRATE_MS)));
        let until = tokio::time::Instant::now() + deadline;
        let mut asked = Vec::new();
        for (delivery, is_new) in accepted {
            let (service, event) = (Arc::clone(self), event.clone());
            asked.push(tokio::spawn(async move {
                match is_new {
                    true => service.recall(&event, delivery, until, deadline).await,
                    // The first delivery of the event asks, or has asked.
                    false => {
                        let left = until.saturating_duration_since(tokio::time::Instant::now());
                        Ok(service.deliveries.wait(&delivery.company_id, delivery.id, left).await?)
                    }
                }
            }));
        }
        let mut deliveries = Vec::new();
        for answer in asked {
            let answer = answer.await.map_err(ServiceError::host)?;
            let mut delivery: Delivery = answer?;
            if delivery.recall.is_none() {
                delivery.recall = Some(degraded("its first delivery has not been answered yet".to_owned()));
            }
            deliveries.push(delivery);
        }
        Ok(deliveries)
    }

    async fn recall(
        self: &Arc<Self>,
        event: &HookEvent,
        before: Delivery,
        until: tokio::time::Instant,
        deadline: Duration,
    ) -> Result<Delivery, ServiceError> {
        let query = QueryRequest {
            binding_key: Some(before.binding_key.clone()),
            scope: event.scope.clone(),
            query: event.query.clone().unwrap_or_default(),
            top_k: event.top_k,
            intent: Intent::AgentPreamble,
            metadata_filter: None,
        };
        // The deadline ends the waiting and not the query: what the provider does and costs is recorded.
        let (service, hook) = (Arc::clone(self), before.hook.clone());
        let asking = tokio::spawn(async move { service.query_for(&Caller::worker(), query, Some(&hook)).await });
        let asked = tokio::time::timeout_at(until, asking).await;
        let asked = asked.map(|joined| joined.unwrap_or_else(|error| Err(ServiceError::host(error))));
        let (recall, operation_id) = match asked {
            Ok(Ok(bundle)) => (bounded(bundle.snippets, bundle.profile_summary), Some(bundle.operation_id)),
            Ok(Err(error)) => {
                let operation_id = match &error {
                    ServiceError::Operation { operation_id, .. } => Some(*operation_id),
                    _ => None,
                };
                (degraded(error.to_string()), operation_id)
            }
            Err(_) => (degraded(format!("it took longer than the {} ms of its deadline", deadline.as_millis())), None),
        };
        let after = Delivery {
            status: DeliveryStatus::Delivered,
            attempts: 1,
            due_at: None,
            finished_at: Some(self.clock.now()),
            operation_id,
            last_operation_id: operation_id,
            recall: Some(recall),
            ..before.clone()
        };
        self.deliveries.write(&before, &after).await?;
        Ok(after)
    }
}

/// What is kept of recall: it is stored with the delivery, and answered again to whoever repeats the event.
fn bounded(mut snippets: Vec<Snippet>, profile_summary: Option<String>) -> Recall {
    let mut bytes = 0;
    let size = |snippet: &Snippet| snippet.text.len() + snippet.summary.as_ref().map_or(0, String::len);
    let fit = snippets.iter().take_while(|snippet| {
        bytes += size(snippet);
        bytes <= limits::MAX_PAGE_BYTES
    });
    let (kept, found) = (fit.count(), snippets.len());
    snippets.truncate(kept);
    let degraded = (kept < found).then(|| {
        format!("{} of {found} records are left out: together they are larger than 4 MiB; ask for fewer", found - kept)
    });
    Recall { snippets, profile_summary, degraded }
}

fn degraded(reason: String) -> Recall {
    Recall { degraded: Some(reason), ..Recall::default() }
}
