//! Hooks: the runtime plane accepts events; the control plane lists and replays their deliveries.

use std::sync::Arc;

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::generate::GenContext;
use aide::openapi::{self, Operation};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::list::ListQuery;
use super::route_table::routes;
use super::runtime::same_company;
use crate::failure::{DeliveryCodes, ResolveCodes};
use crate::{
    Authorized, AuthorizedByCore, Body, Failure, Json, OnlyRead, PathParam, Problem, ProblemCode,
    permission, read_value,
};
use memhost_core::{BatchReceipt, ChangedCount, DeliveryAction, Page, Service};
use memhost_executor::off_executor;
use memhost_types::schema::items;
use memhost_types::{
    Delivery, DeliveryFilter, DeliveryId, DeliveryStatus, HookEvent, HookReceipt, NotTaken, limits,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const AT_ONCE: &str =
    "At most 1,000 at a time; `more` says that others match. An empty filter matches all of them.";

/// The route below `/runtime/v1/companies/{company}`.
pub(super) fn runtime_routes() -> ApiRouter<Arc<Service>> {
    routes! { RUNTIME, "hooks":
        "/hooks" {
            post deliver => "deliverHook", "Deliver an event of a hook",
                "Its deliveries are stored before the answer is sent: 202 while one is pending or \
                 held, else 200.";
        }
        "/hooks/batch" {
            post deliver_batch => "deliverHooks", "Deliver many events of hooks",
                "At most 1,000 events; each has its own result, in the same order, and one that is \
                 refused does not stop \
                 the others. What was accepted is stored before the answer is sent, and is begun \
                 in this order. \
                 `pre_run_hydrate` and `waitMs` are for single events.";
        }
    }
}

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    routes! { COMPANY, "hooks":
        "/deliveries" {
            get list => "listDeliveries", "List the deliveries that match", "Newest first.";
        }
        "/deliveries/{id}" { get show => "getDelivery", "Show a delivery"; }
        "/deliveries/{id}/replay" { post replay => "replayDelivery", "Retry a dead letter"; }
        "/deliveries/{id}/discard" {
            post discard => "discardDelivery", "Give up a dead or pending delivery";
        }
        "/deliveries/replay" {
            post replay_all => "replayDeliveries", "Retry the dead letters that match", AT_ONCE;
        }
        "/deliveries/discard" {
            post discard_all =>
                "discardDeliveries", "Give up the dead and pending deliveries that match", AT_ONCE;
        }
    }
}

/// A receipt with its status: 202 while a delivery is pending or held, 200 when all have ended.
struct Accepted(StatusCode, HookReceipt);

impl IntoResponse for Accepted {
    fn into_response(self) -> Response {
        let is_recall = self.1.context.is_some();
        let mut response = (self.0, Json(self.1)).into_response();
        // The same event recalls again when it is sent again.
        if is_recall {
            response.extensions_mut().insert(OnlyRead);
        }
        response
    }
}

impl OperationOutput for Accepted {
    type Inner = HookReceipt;

    fn inferred_responses(
        ctx: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<openapi::StatusCode>, openapi::Response)> {
        let receipt = Json::<HookReceipt>::operation_response(ctx, operation);
        let both = |receipt: openapi::Response| {
            [200, 202].map(|code| (Some(openapi::StatusCode::Code(code)), receipt.clone()))
        };
        receipt.into_iter().flat_map(both).collect()
    }
}

async fn deliver(
    AuthorizedByCore { service, caller, company, .. }: AuthorizedByCore<permission::Deliver>,
    Body(event): Body<HookEvent>,
) -> Result<Accepted, Failure<ResolveCodes>> {
    same_company(&company, &event.scope)?;
    let receipt = Arc::clone(service.background()).deliver(&caller, event).await?;
    let waits = |delivery: &Delivery| {
        matches!(delivery.status, DeliveryStatus::Pending | DeliveryStatus::Held)
    };
    let status =
        if receipt.deliveries.iter().any(waits) { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok(Accepted(status, receipt))
}

/// Events as they are sent.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HookBatch {
    /// In the order in which they happened.
    #[schemars(with = "Vec<HookEvent>", transform = items)]
    events: Vec<Value>,
}

/// The results of a batch of events.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct HookResults {
    /// Events that this call has stored.
    accepted: usize,
    /// Events that had been delivered before.
    duplicates: usize,
    /// Events that no binding takes; they are not kept.
    not_taken: usize,
    /// Events that were refused.
    refused: usize,
    /// One for each event, in the order of the request.
    results: Vec<HookResult>,
}

/// The result of one event of a batch.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct HookResult {
    /// The event's place in the request, from 0.
    index: usize,
    outcome: HookOutcome,
    /// Its deliveries, one for each binding that takes it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    delivery_ids: Vec<DeliveryId>,
    /// Why no binding takes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_taken: Option<NotTaken>,
    /// Why it was refused, as for a single event.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Problem>,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum HookOutcome {
    /// It is stored, and will be delivered.
    Accepted,
    /// It had been delivered before, in this batch or earlier.
    Duplicate,
    /// No binding takes it, and it is not kept.
    NotTaken,
    /// It was refused.
    Refused,
}

impl HookResult {
    fn of(index: usize, result: Result<BatchReceipt, Problem>) -> Self {
        let (outcome, delivery_ids, not_taken, problem) = match result {
            Err(problem) => (HookOutcome::Refused, Vec::new(), None, Some(problem)),
            Ok(BatchReceipt { not_taken: Some(why), .. }) => {
                (HookOutcome::NotTaken, Vec::new(), Some(why), None)
            }
            Ok(BatchReceipt { is_duplicate: true, deliveries, .. }) => {
                (HookOutcome::Duplicate, deliveries, None, None)
            }
            Ok(BatchReceipt { deliveries, .. }) => (HookOutcome::Accepted, deliveries, None, None),
        };
        Self { index, outcome, delivery_ids, not_taken, problem }
    }
}

async fn deliver_batch(
    allowed: Authorized<permission::Deliver>,
    Body(HookBatch { events }): Body<HookBatch>,
) -> Result<Json<HookResults>, Failure<ResolveCodes>> {
    if events.is_empty() || events.len() > limits::MAX_ITEMS {
        let detail = format!("there are {} events; send 1 to {}", events.len(), limits::MAX_ITEMS);
        return Err(Problem::invalid(detail).at("events").into());
    }
    let read = |event: &Value| {
        let event: HookEvent = read_value(event)?;
        same_company(&allowed.company, &event.scope).map(|()| event)
    };
    let read: Vec<Result<HookEvent, Problem>> =
        off_executor(usize::MAX, || events.iter().map(read).collect());
    let mut places = Vec::with_capacity(read.len());
    let mut fine = Vec::with_capacity(read.len());
    for event in read {
        places.push(event.map(|event| fine.push(event)));
    }
    let mut results = Arc::clone(allowed.service.background())
        .deliver_batch(&allowed.caller, fine)
        .await?
        .into_iter();
    let results = places.into_iter().enumerate().map(|(index, place)| {
        let result = place.and_then(|()| match results.next() {
            Some(result) => Ok(result?),
            None => Err(Problem::new(ProblemCode::Host, "the event has no result; send it again")),
        });
        HookResult::of(index, result)
    });
    let results: Vec<HookResult> = results.collect();
    let count = |outcome| results.iter().filter(|result| result.outcome == outcome).count();
    Ok(Json(HookResults {
        accepted: count(HookOutcome::Accepted),
        duplicates: count(HookOutcome::Duplicate),
        not_taken: count(HookOutcome::NotTaken),
        refused: count(HookOutcome::Refused),
        results,
    }))
}

async fn list(
    allowed: Authorized<permission::View>,
    ListQuery { filter, page }: ListQuery<DeliveryFilter>,
) -> Result<Json<Page<Delivery>>, Problem> {
    Ok(Json(
        allowed
            .service
            .control()
            .deliveries(&allowed.company, &filter, page.cursor.as_deref(), page.limit)
            .await?,
    ))
}

async fn show(
    allowed: Authorized<permission::View>,
    PathParam(delivery): PathParam<DeliveryId>,
) -> Result<Json<Delivery>, Problem> {
    Ok(Json(allowed.service.control().delivery_of(&allowed.company, delivery).await?))
}

async fn discard(
    allowed: Authorized<permission::Administer>,
    PathParam(delivery): PathParam<DeliveryId>,
) -> Result<Json<Delivery>, Failure<DeliveryCodes>> {
    Ok(Json(
        allowed
            .service
            .control()
            .change_delivery(&allowed.caller, &allowed.company, delivery, DeliveryAction::Discard)
            .await?,
    ))
}

async fn replay_all(
    allowed: Authorized<permission::Administer>,
    Body(filter): Body<DeliveryFilter>,
) -> Result<Json<ChangedCount>, Problem> {
    Ok(Json(
        allowed
            .service
            .control()
            .change_deliveries(&allowed.caller, &allowed.company, &filter, DeliveryAction::Replay)
            .await?,
    ))
}

async fn discard_all(
    allowed: Authorized<permission::Administer>,
    Body(filter): Body<DeliveryFilter>,
) -> Result<Json<ChangedCount>, Problem> {
    Ok(Json(
        allowed
            .service
            .control()
            .change_deliveries(&allowed.caller, &allowed.company, &filter, DeliveryAction::Discard)
            .await?,
    ))
}

async fn replay(
    allowed: Authorized<permission::Administer>,
    PathParam(delivery): PathParam<DeliveryId>,
) -> Result<Json<Delivery>, Failure<DeliveryCodes>> {
    Ok(Json(
        allowed
            .service
            .control()
            .change_delivery(&allowed.caller, &allowed.company, delivery, DeliveryAction::Replay)
            .await?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use memhost_types::ContextBlock;

    #[test]
    fn recall_may_be_refused_and_what_was_captured_may_not() {
        let answer = |context| {
            let receipt = HookReceipt {
                hook_id: "h".into(),
                is_duplicate: false,
                deliveries: vec![],
                not_taken: None,
                context,
            };
            Accepted(StatusCode::OK, receipt)
                .into_response()
                .extensions()
                .get::<OnlyRead>()
                .is_some()
        };
        let degraded = Vec::new();
        let block = ContextBlock {
            text: "x".into(),
            tokens: 1,
            token_budget: 1,
            included: 1,
            omitted: 0,
            degraded,
        };
        assert!(answer(Some(block)) && !answer(None));
    }
}
