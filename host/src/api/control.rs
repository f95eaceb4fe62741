//! The control plane: secrets, the activity and operation logs, the plugins.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use crate::contract::{ActivityPage, CompanyId, Operation, OperationFilter, OperationPage, limits};
use crate::edge::Problem;
use crate::edge::{Administering, Host, Hosting, In, Viewing};
use crate::edge::{Body, Query, parse};
use crate::service::{Check, PluginView, SecretView, Service, SetSecret};

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn company_routes() -> Router<Arc<Service>> {
    Router::new()
        .route("/secrets", get(secrets))
        .route("/secrets/{name}", axum::routing::put(set_secret).delete(remove_secret))
        .route("/activity", get(activity))
        .route("/operations", get(operations))
        .route("/operations/{id}", get(operation))
}

/// The routes below `/control/v1`.
pub(super) fn routes() -> Router<Arc<Service>> {
    Router::new()
        .route("/companies", get(companies))
        .route("/plugins", get(plugins))
        .route("/plugins/scan", post(scan_plugins))
        .route("/doctor", get(doctor))
}

/// A list without pages.
#[derive(Serialize)]
pub(super) struct Items<T> {
    pub(super) items: Vec<T>,
}

async fn companies(State(service): State<Arc<Service>>, _: Host<Hosting>) -> Json<Items<CompanyId>> {
    Json(Items { items: service.companies() })
}

async fn doctor(State(service): State<Arc<Service>>, _: Host<Hosting>) -> Json<Items<Check>> {
    Json(Items { items: service.doctor().await })
}

async fn plugins(State(service): State<Arc<Service>>, _: Host<Hosting>) -> Json<PluginView> {
    Json(service.plugins())
}

async fn secrets(
    State(service): State<Arc<Service>>,
    allowed: In<Viewing>,
) -> Result<Json<Items<SecretView>>, Problem> {
    Ok(Json(Items { items: service.secrets(&allowed.company)? }))
}

async fn set_secret(
    State(service): State<Arc<Service>>,
    Path((_, name)): Path<(String, String)>,
    allowed: In<Administering>,
    Body(request): Body<SetSecret>,
) -> Result<Json<SecretView>, Problem> {
    Ok(Json(service.set_secret(&allowed.caller, &allowed.company, &name, request).await?))
}

async fn remove_secret(
    State(service): State<Arc<Service>>,
    Path((_, name)): Path<(String, String)>,
    allowed: In<Administering>,
) -> Result<StatusCode, Problem> {
    service.remove_secret(&allowed.caller, &allowed.company, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ActivityQuery {
    cursor: Option<String>,
}

async fn activity(
    State(service): State<Arc<Service>>,
    allowed: In<Viewing>,
    Query(query): Query<ActivityQuery>,
) -> Result<Json<ActivityPage>, Problem> {
    Ok(Json(service.activity(&allowed.company, query.cursor.as_deref())?))
}

async fn scan_plugins(State(service): State<Arc<Service>>, _: Host<Hosting>) -> Json<PluginView> {
    service.scan_plugins().await;
    Json(service.plugins())
}

/// The filter's fields and the page's. Written out: a flattened struct could not refuse unknown parameters.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OperationQuery {
    agent_id: Option<String>,
    issue_id: Option<String>,
    project_id: Option<String>,
    run_id: Option<String>,
    session_key: Option<String>,
    hook_kind: Option<crate::contract::HookKind>,
    source_kind: Option<crate::contract::SourceKind>,
    kind: Option<crate::contract::OperationKind>,
    outcome: Option<crate::contract::Outcome>,
    binding_key: Option<crate::contract::BindingKey>,
    since: Option<jiff::Timestamp>,
    until: Option<jiff::Timestamp>,
    cursor: Option<String>,
    limit: Option<u32>,
}

async fn operations(
    State(service): State<Arc<Service>>,
    allowed: In<Viewing>,
    Query(query): Query<OperationQuery>,
) -> Result<Json<OperationPage>, Problem> {
    let filter = OperationFilter {
        agent_id: query.agent_id,
        issue_id: query.issue_id,
        project_id: query.project_id,
        run_id: query.run_id,
        session_key: query.session_key,
        hook_kind: query.hook_kind,
        source_kind: query.source_kind,
        kind: query.kind,
        outcome: query.outcome,
        binding_key: query.binding_key,
        since: query.since,
        until: query.until,
    };
    let limit = query.limit.unwrap_or(limits::DEFAULT_LIMIT);
    Ok(Json(service.operations(&allowed.company, &filter, query.cursor.as_deref(), limit)?))
}

async fn operation(
    State(service): State<Arc<Service>>,
    Path((_, id)): Path<(String, String)>,
    allowed: In<Viewing>,
) -> Result<Json<Operation>, Problem> {
    Ok(Json(service.operation(&allowed.company, parse("operationId", &id)?)?))
}
