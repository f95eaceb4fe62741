//! The control plane: bindings and their targets, the operation log, the plugins.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use super::extract::{Body, Company, Query, parse};
use super::problem::Problem;
use crate::bindings::Why;
use crate::contract::{ActivityPage, CompanyId, Grants, Operation, OperationFilter, OperationPage, limits};
use crate::service::{
    BindingView, Caller, Check, CreateBinding, GrantsView, PluginView, SecretView, Service, SetSecret, SetTarget,
    UpdateBinding,
};

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn company_routes() -> Router<Arc<Service>> {
    Router::new()
        .route("/bindings", get(bindings).post(create_binding))
        .route("/bindings/{key}", get(binding).patch(update_binding))
        .route("/bindings/{key}/grants", get(grants).put(set_grants))
        .route("/bindings/{key}/reset", post(reset_binding))
        .route("/resolve", get(resolve))
        .route("/targets", axum::routing::put(set_target))
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

#[derive(Serialize)]
struct Items<T> {
    items: Vec<T>,
}

async fn companies(State(service): State<Arc<Service>>) -> Json<Items<CompanyId>> {
    Json(Items { items: service.companies() })
}

async fn doctor(State(service): State<Arc<Service>>) -> Json<Items<Check>> {
    Json(Items { items: service.doctor().await })
}

async fn plugins(State(service): State<Arc<Service>>) -> Json<PluginView> {
    Json(service.plugins())
}

async fn bindings(
    State(service): State<Arc<Service>>,
    Company(company): Company,
) -> Result<Json<Items<BindingView>>, Problem> {
    Ok(Json(Items { items: service.bindings(&company)? }))
}

async fn create_binding(
    State(service): State<Arc<Service>>,
    Company(company): Company,
    Body(request): Body<CreateBinding>,
) -> Result<(StatusCode, Json<BindingView>), Problem> {
    let made = service.create_binding(&Caller::operator(), &company, request).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

async fn binding(
    State(service): State<Arc<Service>>,
    Path((_, key)): Path<(String, String)>,
    Company(company): Company,
) -> Result<Json<BindingView>, Problem> {
    Ok(Json(service.binding(&company, &parse("bindingKey", &key)?)?))
}

async fn update_binding(
    State(service): State<Arc<Service>>,
    Path((_, key)): Path<(String, String)>,
    Company(company): Company,
    Body(request): Body<UpdateBinding>,
) -> Result<Json<BindingView>, Problem> {
    let key = parse("bindingKey", &key)?;
    Ok(Json(service.update_binding(&Caller::operator(), &company, &key, request).await?))
}

async fn grants(
    State(service): State<Arc<Service>>,
    Path((_, key)): Path<(String, String)>,
    Company(company): Company,
) -> Result<Json<GrantsView>, Problem> {
    Ok(Json(service.grants(&company, &parse("bindingKey", &key)?)?))
}

async fn set_grants(
    State(service): State<Arc<Service>>,
    Path((_, key)): Path<(String, String)>,
    Company(company): Company,
    Body(grants): Body<Grants>,
) -> Result<Json<GrantsView>, Problem> {
    let key = parse("bindingKey", &key)?;
    Ok(Json(service.set_grants(&Caller::operator(), &company, &key, grants).await?))
}

async fn reset_binding(
    State(service): State<Arc<Service>>,
    Path((_, key)): Path<(String, String)>,
    Company(company): Company,
) -> Result<Json<BindingView>, Problem> {
    Ok(Json(service.reset_binding(&Caller::operator(), &company, &parse("bindingKey", &key)?).await?))
}

async fn secrets(
    State(service): State<Arc<Service>>,
    Company(company): Company,
) -> Result<Json<Items<SecretView>>, Problem> {
    Ok(Json(Items { items: service.secrets(&company)? }))
}

async fn set_secret(
    State(service): State<Arc<Service>>,
    Path((_, name)): Path<(String, String)>,
    Company(company): Company,
    Body(request): Body<SetSecret>,
) -> Result<Json<SecretView>, Problem> {
    Ok(Json(service.set_secret(&Caller::operator(), &company, &name, request).await?))
}

async fn remove_secret(
    State(service): State<Arc<Service>>,
    Path((_, name)): Path<(String, String)>,
    Company(company): Company,
) -> Result<StatusCode, Problem> {
    service.remove_secret(&Caller::operator(), &company, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ActivityQuery {
    cursor: Option<String>,
}

async fn activity(
    State(service): State<Arc<Service>>,
    Company(company): Company,
    Query(query): Query<ActivityQuery>,
) -> Result<Json<ActivityPage>, Problem> {
    Ok(Json(service.activity(&company, query.cursor.as_deref())?))
}

async fn scan_plugins(State(service): State<Arc<Service>>) -> Json<PluginView> {
    service.scan_plugins().await;
    Json(service.plugins())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ResolveQuery {
    agent_id: Option<crate::contract::AgentId>,
    binding_key: Option<crate::contract::BindingKey>,
}

#[derive(Serialize)]
struct Resolved {
    binding: BindingView,
    why: Why,
}

async fn resolve(
    State(service): State<Arc<Service>>,
    Company(company): Company,
    Query(query): Query<ResolveQuery>,
) -> Result<Json<Resolved>, Problem> {
    let (binding, why) = service.resolve_binding(&company, query.agent_id.as_ref(), query.binding_key.as_ref())?;
    Ok(Json(Resolved { binding, why }))
}

async fn set_target(
    State(service): State<Arc<Service>>,
    Company(company): Company,
    Body(request): Body<SetTarget>,
) -> Result<StatusCode, Problem> {
    service.set_target(&Caller::operator(), &company, request).await?;
    Ok(StatusCode::NO_CONTENT)
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
    Company(company): Company,
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
    Ok(Json(service.operations(&company, &filter, query.cursor.as_deref(), limit)?))
}

async fn operation(
    State(service): State<Arc<Service>>,
    Path((_, id)): Path<(String, String)>,
    Company(company): Company,
) -> Result<Json<Operation>, Problem> {
    Ok(Json(service.operation(&company, parse("operationId", &id)?)?))
}
