//! The runtime plane: the plan's operations, and two ways to look into a provider. Bodies and answers are the plan's types, unchanged.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};

use crate::contract::{
    BrowsePage, BrowseRequest, CaptureRequest, CaptureResponse, CompanyId, ContextBundle, CorrectRequest,
    CorrectResponse, Explanation, ForgetRequest, ForgetResponse, GetRequest, GetResponse, ListPage, ListRequest,
    QueryRequest, Scope, UpsertRequest, UpsertResponse,
};
use crate::edge::By;
use crate::edge::Problem;
use crate::edge::{Body, Company};
use crate::service::Service;

/// The routes below `/runtime/v1/companies/{company}`.
pub(super) fn routes() -> Router<Arc<Service>> {
    Router::new()
        .route("/capture", post(capture))
        .route("/records", post(upsert))
        .route("/query", post(query))
        .route("/list", post(list))
        .route("/get", post(get))
        .route("/forget", post(forget))
        .route("/correct", post(correct))
        .route("/explain", post(explain))
        .route("/browse", post(browse))
}

pub(super) fn same_company(company: &CompanyId, scope: &Scope) -> Result<(), Problem> {
    if scope.company_id == *company {
        return Ok(());
    }
    let detail = format!("scope.companyId is not the company of the address, {company}");
    Err(Problem::new(StatusCode::BAD_REQUEST, "invalid_request", detail).at("scope.companyId"))
}

macro_rules! operation {
    ($name:ident, $request:ty, $response:ty) => {
        async fn $name(
            State(service): State<Arc<Service>>,
            By(caller): By,
            Company(company): Company,
            Body(request): Body<$request>,
        ) -> Result<Json<$response>, Problem> {
            same_company(&company, &request.scope)?;
            Ok(Json(service.$name(&caller, request).await?))
        }
    };
}

operation!(capture, CaptureRequest, CaptureResponse);
operation!(upsert, UpsertRequest, UpsertResponse);
operation!(query, QueryRequest, ContextBundle);
operation!(list, ListRequest, ListPage);
operation!(get, GetRequest, GetResponse);
operation!(forget, ForgetRequest, ForgetResponse);
operation!(correct, CorrectRequest, CorrectResponse);
operation!(explain, QueryRequest, Explanation);
operation!(browse, BrowseRequest, BrowsePage);
