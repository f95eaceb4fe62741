//! The review queue.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use super::describe;
use crate::failure::ReviewCodes;
use crate::{Authorized, Body, Failure, PathParam, Problem, Query, permission};
use memhost_core::{Page, Service};
use memhost_types::schema::{cursor, page_size};
use memhost_types::{BindingKey, ReviewDecision, ReviewFilter, ReviewId, ReviewItem, ReviewStatus};

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    ApiRouter::new()
        .api_route(
            "/reviews",
            get_with(list, describe("listReviews", "List what waits for a person, or waited", "Newest first.")),
        )
        .api_route(
            "/reviews/{id}/decision",
            post_with(decide, describe("decideReview", "Decide about something that waits", "Once.")),
        )
        .with_path_items(|item| item.tag("reviews"))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReviewQuery {
    status: Option<ReviewStatus>,
    binding_key: Option<BindingKey>,
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
    Query(query): Query<ReviewQuery>,
) -> Result<Json<Page<ReviewItem>>, Problem> {
    let filter = ReviewFilter { status: query.status, binding_key: query.binding_key, ..ReviewFilter::default() };
    Ok(Json(service.reviews(&allowed.company, &filter, query.cursor.as_deref(), query.limit).await?))
}

async fn decide(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Administer>,
    PathParam(id): PathParam<ReviewId>,
    Body(request): Body<ReviewDecision>,
) -> Result<Json<ReviewItem>, Failure<ReviewCodes>> {
    Ok(Json(service.decide(&allowed.caller, &allowed.company, id, request).await?))
}
