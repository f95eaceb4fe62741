//! Hooks: events come in on the runtime plane; what became of them is looked at, and replayed, on the control plane.

use std::sync::Arc;

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use aide::generate::GenContext;
use aide::openapi::{self, Operation};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;

use super::about;
use super::runtime::same_company;
use crate::Problem;
use crate::{Administering, Authenticated, Authorized, Viewing};
use crate::{Body, Company, PathParam, Query, document};
use memhost_core::{Act, Page, Service};
use memhost_types::schema::{cursor, page_size};
use memhost_types::{
    BindingKey, Delivery, DeliveryFilter, DeliveryId, DeliveryStatus, HookEvent, HookKind, HookReceipt,
};

/// The route below `/runtime/v1/companies/{company}`.
pub(super) fn runtime_routes() -> ApiRouter<Arc<Service>> {
    ApiRouter::new()
        .api_route(
            "/hooks",
            post_with(deliver, |mut operation| {
                document::for_whom(operation.inner_mut(), Act::Deliver);
                let about = about(
                    "deliverHook",
                    "Deliver a lifecycle event",
                    "It is durable when it is answered. 202 while something is still to be done, 200 when everything is.",
                );
                about(operation)
            }),
        )
        .with_path_items(|item| item.tag("hooks"))
}

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    ApiRouter::new()
        .api_route(
            "/deliveries",
            get_with(list, about("listDeliveries", "List deliveries that match", "Newest first.")),
        )
        .api_route("/deliveries/{id}", get_with(show, about("getDelivery", "Show one delivery", "")))
        .api_route(
            "/deliveries/{id}/replay",
            post_with(replay, about("replayDelivery", "Try a delivery again that was given up", "")),
        )
        .with_path_items(|item| item.tag("hooks"))
}

/// What became of an event so far: 202 while something is still to be done, 200 when everything is.
struct Answered(StatusCode, HookReceipt);

impl IntoResponse for Answered {
    fn into_response(self) -> Response {
        (self.0, Json(self.1)).into_response()
    }
}

impl OperationOutput for Answered {
    type Inner = HookReceipt;

    fn inferred_responses(
        ctx: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<openapi::StatusCode>, openapi::Response)> {
        let answered = Json::<HookReceipt>::operation_response(ctx, operation);
        let both = |answered: openapi::Response| {
            [200, 202].map(|code| (Some(openapi::StatusCode::Code(code)), answered.clone()))
        };
        answered.into_iter().flat_map(both).collect()
    }
}

/// 202 while something is still to be done, 200 when everything is.
async fn deliver(
    State(service): State<Arc<Service>>,
    Authenticated(caller): Authenticated,
    Company(company): Company,
    Body(event): Body<HookEvent>,
) -> Result<Answered, Problem> {
    same_company(&company, &event.scope)?;
    let receipt = service.deliver(&caller, event).await?;
    let waits = |delivery: &Delivery| matches!(delivery.status, DeliveryStatus::Pending | DeliveryStatus::Held);
    let status = if receipt.deliveries.iter().any(waits) { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok(Answered(status, receipt))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DeliveryQuery {
    status: Option<DeliveryStatus>,
    binding_key: Option<BindingKey>,
    hook_kind: Option<HookKind>,
    hook_id: Option<String>,
    /// Where the page begins: `nextCursor` of the page before.
    #[schemars(transform = cursor)]
    cursor: Option<String>,
    /// How many at most.
    #[schemars(transform = page_size)]
    limit: Option<u32>,
}

async fn list(
    State(service): State<Arc<Service>>,
    allowed: Authorized<Viewing>,
    Query(query): Query<DeliveryQuery>,
) -> Result<Json<Page<Delivery>>, Problem> {
    let DeliveryQuery { status, binding_key, hook_kind, hook_id, cursor, limit } = query;
    let filter = DeliveryFilter { status, binding_key, hook_kind, hook_id };
    Ok(Json(service.deliveries(&allowed.company, &filter, cursor.as_deref(), limit).await?))
}

async fn show(
    State(service): State<Arc<Service>>,
    allowed: Authorized<Viewing>,
    PathParam(delivery): PathParam<DeliveryId>,
) -> Result<Json<Delivery>, Problem> {
    Ok(Json(service.delivery_of(&allowed.company, delivery).await?))
}

async fn replay(
    State(service): State<Arc<Service>>,
    allowed: Authorized<Administering>,
    PathParam(delivery): PathParam<DeliveryId>,
) -> Result<Json<Delivery>, Problem> {
    Ok(Json(service.replay_delivery(&allowed.caller, &allowed.company, delivery).await?))
}
