//! The control plane: secrets, the activity and operation logs, the plugins.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with, put_with};
use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::describe;
use crate::{Authorized, Body, HostAuthorized, NoContent, PathParam, Problem, Query, SecretName, permission};
use memhost_core::{Check, PluginView, SecretView, Service, SetSecret};
use memhost_types::schema::{cursor, page_size};
use memhost_types::{ActivityPage, CompanyId, Operation, OperationFilter, OperationId, OperationPage, limits};

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn company_routes() -> ApiRouter<Arc<Service>> {
    let secrets = ApiRouter::new()
        .api_route(
            "/secrets",
            get_with(secrets, describe("listSecrets", "List a company's secrets", "Without their values.")),
        )
        .api_route(
            "/secrets/{name}",
            put_with(
                set_secret,
                describe("setSecret", "Set a secret and where it may go", "No answer and no log has its value."),
            )
            .delete_with(remove_secret, describe("deleteSecret", "Remove a secret", "")),
        )
        .with_path_items(|item| item.tag("secrets"));
    let activity = ApiRouter::new()
        .api_route(
            "/activity",
            get_with(
                activity,
                describe("listActivity", "List what was changed, by whom, before and after", "Newest first."),
            ),
        )
        .with_path_items(|item| item.tag("activity"));
    let operations = ApiRouter::new()
        .api_route(
            "/operations",
            get_with(operations, describe("listOperations", "List operations that match", "Newest first.")),
        )
        .api_route(
            "/operations/{id}",
            get_with(operation, describe("getOperation", "Show one operation with everything that is known of it", "")),
        )
        .with_path_items(|item| item.tag("operations"));
    secrets.merge(activity).merge(operations)
}

/// The routes below `/control/v1`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    let host = ApiRouter::new()
        .api_route("/companies", get_with(companies, describe("listCompanies", "List the companies of the host", "")))
        .api_route(
            "/doctor",
            get_with(doctor, describe("runDoctor", "Look at everything that could be wrong with the host", "")),
        )
        .with_path_items(|item| item.tag("host"));
    let plugins = ApiRouter::new()
        .api_route(
            "/plugins",
            get_with(plugins, describe("listPlugins", "List the providers, and the files that were kept out", "")),
        )
        .api_route(
            "/plugins/scan",
            post_with(scan_plugins, describe("scanPlugins", "Look at the plugins directory now", "")),
        )
        .with_path_items(|item| item.tag("plugins"));
    host.merge(plugins)
}

/// A list without pages.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}List")]
pub(super) struct Items<T> {
    /// All of them.
    pub(super) items: Vec<T>,
}

async fn companies(State(service): State<Arc<Service>>, _: HostAuthorized) -> Json<Items<CompanyId>> {
    Json(Items { items: service.companies() })
}

async fn doctor(State(service): State<Arc<Service>>, _: HostAuthorized) -> Json<Items<Check>> {
    Json(Items { items: service.doctor().await })
}

async fn plugins(State(service): State<Arc<Service>>, _: HostAuthorized) -> Json<PluginView> {
    Json(service.plugins())
}

async fn secrets(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::View>,
) -> Result<Json<Items<SecretView>>, Problem> {
    Ok(Json(Items { items: service.secrets(&allowed.company).await? }))
}

async fn set_secret(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Administer>,
    PathParam(SecretName(name)): PathParam<SecretName>,
    Body(request): Body<SetSecret>,
) -> Result<Json<SecretView>, Problem> {
    Ok(Json(service.set_secret(&allowed.caller, &allowed.company, &name, request).await?))
}

async fn remove_secret(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Administer>,
    PathParam(SecretName(name)): PathParam<SecretName>,
) -> Result<NoContent, Problem> {
    service.remove_secret(&allowed.caller, &allowed.company, &name).await?;
    Ok(NoContent)
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ActivityQuery {
    /// Where the page begins: `nextCursor` of the page before.
    #[schemars(transform = cursor)]
    cursor: Option<String>,
}

async fn activity(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::View>,
    Query(query): Query<ActivityQuery>,
) -> Result<Json<ActivityPage>, Problem> {
    Ok(Json(service.activity(&allowed.company, query.cursor.as_deref()).await?))
}

async fn scan_plugins(State(service): State<Arc<Service>>, _: HostAuthorized) -> Json<PluginView> {
    service.scan_plugins().await;
    Json(service.plugins())
}

/// The filter's fields and the page's. Written out: a flattened struct could not refuse unknown parameters.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OperationQuery {
    agent_id: Option<String>,
    issue_id: Option<String>,
    project_id: Option<String>,
    run_id: Option<String>,
    session_key: Option<String>,
    hook_kind: Option<memhost_types::HookKind>,
    source_kind: Option<memhost_types::SourceKind>,
    kind: Option<memhost_types::OperationKind>,
    outcome: Option<memhost_types::Outcome>,
    binding_key: Option<memhost_types::BindingKey>,
    /// Began at this moment or later.
    since: Option<jiff::Timestamp>,
    /// Began before this moment.
    until: Option<jiff::Timestamp>,
    /// Where the page begins: `nextCursor` of the page before.
    #[schemars(transform = cursor)]
    cursor: Option<String>,
    /// How many at most.
    #[schemars(transform = page_size)]
    limit: Option<u32>,
}

async fn operations(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::View>,
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
    Ok(Json(service.operations(&allowed.company, &filter, query.cursor.as_deref(), limit).await?))
}

async fn operation(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::View>,
    PathParam(id): PathParam<OperationId>,
) -> Result<Json<Operation>, Problem> {
    Ok(Json(service.operation(&allowed.company, id).await?))
}
