//! Hooks: events come in on the runtime plane; what became of them is looked at, and replayed, on the control plane.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;

use super::runtime::same_company;
use crate::contract::{
    BindingKey, Delivery, DeliveryFilter, DeliveryId, DeliveryStatus, HookEvent, HookKind, HookReceipt,
};
use crate::edge::Problem;
use crate::edge::{Administering, By, In, Viewing};
use crate::edge::{Body, Company, Query, parse};
use crate::service::{Page, Service};

/// The route below `/runtime/v1/companies/{company}`.
pub(super) fn runtime_routes() -> Router<Arc<Service>> {
    Router::new().route("/hooks", post(deliver))
}

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn routes() -> Router<Arc<Service>> {
    Router::new()
        .route("/deliveries", get(list))
        .route("/deliveries/{id}", get(show))
        .route("/deliveries/{id}/replay", post(replay))
}

/// 202 while something is still to be done, 200 when everything is.
async fn deliver(
    State(service): State<Arc<Service>>,
    By(caller): By,
    Company(company): Company,
    Body(event): Body<HookEvent>,
) -> Result<(StatusCode, Json<HookReceipt>), Problem> {
    same_company(&company, &event.scope)?;
    let receipt = service.deliver(&caller, event).await?;
    let waits = |delivery: &Delivery| matches!(delivery.status, DeliveryStatus::Pending | DeliveryStatus::Held);
    let status = if receipt.deliveries.iter().any(waits) { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, Json(receipt)))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DeliveryQuery {
    status: Option<DeliveryStatus>,
    binding_key: Option<BindingKey>,
    hook_kind: Option<HookKind>,
    hook_id: Option<String>,
    cursor: Option<String>,
    limit: Option<u32>,
}

async fn list(
    State(service): State<Arc<Service>>,
    allowed: In<Viewing>,
    Query(query): Query<DeliveryQuery>,
) -> Result<Json<Page<Delivery>>, Problem> {
    let DeliveryQuery { status, binding_key, hook_kind, hook_id, cursor, limit } = query;
    let filter = DeliveryFilter { status, binding_key, hook_kind, hook_id };
    Ok(Json(service.deliveries(&allowed.company, &filter, cursor.as_deref(), limit)?))
}

fn id(text: &str) -> Result<DeliveryId, Problem> {
    parse("deliveryId", text).map(DeliveryId)
}

async fn show(
    State(service): State<Arc<Service>>,
    Path((_, delivery)): Path<(String, String)>,
    allowed: In<Viewing>,
) -> Result<Json<Delivery>, Problem> {
    Ok(Json(service.delivery_of(&allowed.company, id(&delivery)?)?))
}

async fn replay(
    State(service): State<Arc<Service>>,
    Path((_, delivery)): Path<(String, String)>,
    allowed: In<Administering>,
) -> Result<Json<Delivery>, Problem> {
    Ok(Json(service.replay_delivery(&allowed.caller, &allowed.company, id(&delivery)?).await?))
}
