//! Hooks: the runtime plane accepts events; the control plane lists and replays their deliveries.

use std::sync::Arc;

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::generate::GenContext;
use aide::openapi::{self, Operation};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::list::ListQuery;
use super::routes;
use super::runtime::same_company;
use crate::failure::{DeliveryCodes, ResolveCodes};
use crate::{Authorized, AuthorizedByCore, Body, Failure, Json, PathParam, Problem, permission};
use memhost_core::{Page, Service, Turn, Turned};
use memhost_types::{Delivery, DeliveryFilter, DeliveryId, DeliveryStatus, HookEvent, HookReceipt};

const AT_ONCE: &str = "At most 1,000 at a time; `more` says that others match. An empty filter matches all of them.";

/// The route below `/runtime/v1/companies/{company}`.
pub(super) fn runtime_routes() -> ApiRouter<Arc<Service>> {
    routes! { "hooks":
        "/hooks" {
            post deliver => "deliverHook", "Deliver an event of a hook",
                "Its deliveries are stored before the answer is sent: 202 while one is pending or held, else 200.";
        }
    }
}

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    routes! { "hooks":
        "/deliveries" { get list => "listDeliveries", "List the deliveries that match", "Newest first."; }
        "/deliveries/{id}" { get show => "getDelivery", "Show a delivery"; }
        "/deliveries/{id}/replay" { post replay => "replayDelivery", "Retry a dead letter"; }
        "/deliveries/{id}/discard" { post discard => "discardDelivery", "Give up a dead or pending delivery"; }
        "/deliveries/replay" {
            post replay_all => "replayDeliveries", "Retry the dead letters that match", AT_ONCE;
        }
        "/deliveries/discard" {
            post discard_all => "discardDeliveries", "Give up the dead and pending deliveries that match", AT_ONCE;
        }
    }
}

/// A receipt with its status: 202 while a delivery is pending or held, 200 when all have ended.
struct Accepted(StatusCode, HookReceipt);

impl IntoResponse for Accepted {
    fn into_response(self) -> Response {
        (self.0, Json(self.1)).into_response()
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
    let receipt = service.deliver(&caller, event).await?;
    let waits = |delivery: &Delivery| matches!(delivery.status, DeliveryStatus::Pending | DeliveryStatus::Held);
    let status = if receipt.deliveries.iter().any(waits) { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok(Accepted(status, receipt))
}

async fn list(
    allowed: Authorized<permission::View>,
    ListQuery { filter, page }: ListQuery<DeliveryFilter>,
) -> Result<Json<Page<Delivery>>, Problem> {
    Ok(Json(allowed.service.deliveries(&allowed.company, &filter, page.cursor.as_deref(), page.limit).await?))
}

async fn show(
    allowed: Authorized<permission::View>,
    PathParam(delivery): PathParam<DeliveryId>,
) -> Result<Json<Delivery>, Problem> {
    Ok(Json(allowed.service.delivery_of(&allowed.company, delivery).await?))
}

async fn discard(
    allowed: Authorized<permission::Administer>,
    PathParam(delivery): PathParam<DeliveryId>,
) -> Result<Json<Delivery>, Failure<DeliveryCodes>> {
    Ok(Json(allowed.service.turn_delivery(&allowed.caller, &allowed.company, delivery, Turn::Discard).await?))
}

async fn replay_all(
    allowed: Authorized<permission::Administer>,
    Body(filter): Body<DeliveryFilter>,
) -> Result<Json<Turned>, Problem> {
    Ok(Json(allowed.service.turn_deliveries(&allowed.caller, &allowed.company, &filter, Turn::Replay).await?))
}

async fn discard_all(
    allowed: Authorized<permission::Administer>,
    Body(filter): Body<DeliveryFilter>,
) -> Result<Json<Turned>, Problem> {
    Ok(Json(allowed.service.turn_deliveries(&allowed.caller, &allowed.company, &filter, Turn::Discard).await?))
}

async fn replay(
    allowed: Authorized<permission::Administer>,
    PathParam(delivery): PathParam<DeliveryId>,
) -> Result<Json<Delivery>, Failure<DeliveryCodes>> {
    Ok(Json(allowed.service.turn_delivery(&allowed.caller, &allowed.company, delivery, Turn::Replay).await?))
}
