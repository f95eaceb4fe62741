//! Hooks: the runtime plane accepts events; the control plane lists and replays their deliveries.

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

use super::describe;
use super::runtime::same_company;
use crate::failure::{DeliveryCodes, ResolveCodes};
use crate::{Authorized, AuthorizedByCore, Body, Failure, PathParam, Problem, Query, permission};
use memhost_core::{Page, Service};
use memhost_types::schema::{cursor, page_size};
use memhost_types::{
    BindingKey, Delivery, DeliveryFilter, DeliveryId, DeliveryStatus, HookEvent, HookKind, HookReceipt,
};

/// The route below `/runtime/v1/companies/{company}`.
pub(super) fn runtime_routes() -> ApiRouter<Arc<Service>> {
    ApiRouter::new()
        .api_route(
            "/hooks",
            post_with(
                deliver,
                describe(
                    "deliverHook",
                    "Deliver a lifecycle event",
                    "It is durable when it is answered. 202 while something is still to be done, 200 when everything is.",
                ),
            ),
        )
        .with_path_items(|item| item.tag("hooks"))
}

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    ApiRouter::new()
        .api_route(
            "/deliveries",
            get_with(list, describe("listDeliveries", "List deliveries that match", "Newest first.")),
        )
        .api_route("/deliveries/{id}", get_with(show, describe("getDelivery", "Show one delivery", "")))
        .api_route(
            "/deliveries/{id}/replay",
            post_with(replay, describe("replayDelivery", "Try a delivery again that was given up", "")),
        )
        .with_path_items(|item| item.tag("hooks"))
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
    State(service): State<Arc<Service>>,
    AuthorizedByCore { caller, company, .. }: AuthorizedByCore<permission::Deliver>,
    Body(event): Body<HookEvent>,
) -> Result<Accepted, Failure<ResolveCodes>> {
    same_company(&company, &event.scope)?;
    let receipt = service.deliver(&caller, event).await?;
    let waits = |delivery: &Delivery| matches!(delivery.status, DeliveryStatus::Pending | DeliveryStatus::Held);
    let status = if receipt.deliveries.iter().any(waits) { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok(Accepted(status, receipt))
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
    allowed: Authorized<permission::View>,
    Query(query): Query<DeliveryQuery>,
) -> Result<Json<Page<Delivery>>, Problem> {
    let DeliveryQuery { status, binding_key, hook_kind, hook_id, cursor, limit } = query;
    let filter = DeliveryFilter { status, binding_key, hook_kind, hook_id };
    Ok(Json(service.deliveries(&allowed.company, &filter, cursor.as_deref(), limit).await?))
}

async fn show(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::View>,
    PathParam(delivery): PathParam<DeliveryId>,
) -> Result<Json<Delivery>, Problem> {
    Ok(Json(service.delivery_of(&allowed.company, delivery).await?))
}

async fn replay(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Administer>,
    PathParam(delivery): PathParam<DeliveryId>,
) -> Result<Json<Delivery>, Failure<DeliveryCodes>> {
    Ok(Json(service.replay_delivery(&allowed.caller, &allowed.company, delivery).await?))
}
