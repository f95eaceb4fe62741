//! The review queue.

use std::sync::Arc;

use aide::axum::ApiRouter;

use super::list::ListQuery;
use super::route_table::routes;
use crate::failure::ReviewCodes;
use crate::{Authorized, Body, Failure, Json, PathParam, Problem, permission};
use memhost_core::{Page, Service};
use memhost_types::{ReviewDecision, ReviewFilter, ReviewId, ReviewItem};

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    routes! { COMPANY, "reviews":
        "/reviews" {
            get list =>
                "listReviews", "List the items of the review queue that match", "Newest first.";
        }
        "/reviews/{id}/decision" {
            post decide =>
                "decideReview", "Approve, edit or reject an item",
                "The same decision twice counts once.";
        }
    }
}

async fn list(
    allowed: Authorized<permission::View>,
    ListQuery { filter, page }: ListQuery<ReviewFilter>,
) -> Result<Json<Page<ReviewItem>>, Problem> {
    Ok(Json(
        allowed
            .service
            .operations()
            .reviews(&allowed.company, &filter, page.cursor.as_deref(), page.limit)
            .await?,
    ))
}

async fn decide(
    allowed: Authorized<permission::Administer>,
    PathParam(id): PathParam<ReviewId>,
    Body(request): Body<ReviewDecision>,
) -> Result<Json<ReviewItem>, Failure<ReviewCodes>> {
    Ok(Json(
        allowed.service.operations().decide(&allowed.caller, &allowed.company, id, request).await?,
    ))
}
