//! The review queue.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;

use crate::contract::{BindingKey, ReviewDecision, ReviewFilter, ReviewId, ReviewItem, ReviewStatus};
use crate::edge::Problem;
use crate::edge::{Administering, In, Viewing};
use crate::edge::{Body, Query, parse};
use crate::service::{Page, Service};

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn routes() -> Router<Arc<Service>> {
    Router::new().route("/reviews", get(list)).route("/reviews/{id}/decision", post(decide))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReviewQuery {
    status: Option<ReviewStatus>,
    binding_key: Option<BindingKey>,
    cursor: Option<String>,
    limit: Option<u32>,
}

async fn list(
    State(service): State<Arc<Service>>,
    allowed: In<Viewing>,
    Query(query): Query<ReviewQuery>,
) -> Result<Json<Page<ReviewItem>>, Problem> {
    let filter = ReviewFilter { status: query.status, binding_key: query.binding_key, ..ReviewFilter::default() };
    Ok(Json(service.reviews(&allowed.company, &filter, query.cursor.as_deref(), query.limit)?))
}

async fn decide(
    State(service): State<Arc<Service>>,
    Path((_, id)): Path<(String, String)>,
    allowed: In<Administering>,
    Body(request): Body<ReviewDecision>,
) -> Result<Json<ReviewItem>, Problem> {
    let id = parse("reviewId", &id).map(ReviewId)?;
    Ok(Json(service.decide(&allowed.caller, &allowed.company, id, request).await?))
}
