//! The control plane: secrets, the activity and operation logs, the plugins.

use std::sync::Arc;

use aide::axum::ApiRouter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::list::ListQuery;
use super::route_table::{Items, routes};
use crate::failure::CompanyCodes;
use crate::{
    Authorized, Body, Company, Failure, HostAuthorized, HostId, Json, NoContent, PathParam,
    Problem, ProblemCode, Query, SecretName, permission,
};
use memhost_core::{Check, PluginView, SecretView, Service, SetSecret};
use memhost_types::schema::cursor;
use memhost_types::{
    ActivityPage, CompanyId, ExplainedOperation, HostView, Operation, OperationFilter, OperationId,
    OperationPage, limits,
};

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn company_routes() -> ApiRouter<Arc<Service>> {
    let secrets = routes! { COMPANY, "secrets":
        "/secrets" {
            get secrets => "listSecrets", "List a company's secrets", "Without their values.";
        }
        "/secrets/{name}" {
            put set_secret => "setSecret", "Set a secret and the origins that it may be sent to",
                "No answer and no log has its value.";
            delete remove_secret => "deleteSecret", "Remove a secret";
        }
    };
    let activity = routes! { COMPANY, "activity":
        "/activity" {
            get activity =>
                "listActivity", "List the changes of a company, with the values before and after",
                "Newest first.";
        }
    };
    let operations = routes! { COMPANY, "operations":
        "/operations" {
            get operations => "listOperations", "List the operations that match", "Newest first.";
        }
        "/operations/{id}" {
            get operation => "getOperation", "Show the whole record of an operation";
        }
        "/operations/{id}/explanation" {
            get explain_operation =>
                "explainOperation", "Explain what a query or a list returned",
                "From what the host kept: the records in their order, and what became of each. \
                 `again=true` also asks the provider how it answers the same request now, where \
                 the binding kept the request; that leaves an operation of its own.";
        }
    };
    secrets.merge(activity).merge(operations)
}

/// The routes below `/control/v1`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    let host = routes! { HOST, "host":
        "/companies" { get companies => "listCompanies", "List the companies of the host"; }
        "/companies/{company}" {
            put make_company => "makeCompany", "Make a company",
                "Repeating it changes nothing. A company's first binding, token, secret, import or \
                 written record makes it, too.";
        }
        "/doctor" {
            get doctor => "runDoctor", "Check disk, store, clock, keys, plugins and bindings";
        }
        "/hosts" {
            get hosts => "listHosts", "List the hosts that share a database",
                "A host with a store of its own answers none.";
        }
        "/hosts/{id}" {
            patch change_host => "updateHost", "Drain a host, or let it serve companies again",
                "A host that is drained gives its companies to the others, takes none until it is \
                 started again, and goes on passing requests on.";
        }
    };
    let plugins = routes! { HOST, "plugins":
        "/plugins" {
            get plugins => "listPlugins", "List the loaded providers and the refused files";
        }
        "/plugins/scan" { post scan_plugins => "scanPlugins", "Scan the plugins directory now"; }
    };
    host.merge(plugins)
}

/// The companies of the host.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompaniesView {
    /// Every company.
    pub items: Vec<CompanyId>,
    /// Companies whose erasure was begun and is not complete. Nothing else can be done in them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub erasing: Vec<CompanyId>,
}

async fn companies(
    allowed: HostAuthorized<permission::Companies>,
) -> Result<Json<CompaniesView>, Problem> {
    let (items, erasing) = allowed.service.tenancy().companies_of_all_hosts().await?;
    Ok(Json(CompaniesView { items, erasing }))
}

/// A company of the host.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompanyView {
    /// Which company.
    pub company_id: CompanyId,
    /// Whether this request made it.
    pub is_new: bool,
}

async fn make_company(
    allowed: HostAuthorized,
    Company(company_id): Company,
) -> Result<Json<CompanyView>, Failure<CompanyCodes>> {
    let is_new = allowed.service.tenancy().make_company(&allowed.caller, &company_id).await?;
    Ok(Json(CompanyView { company_id, is_new }))
}

async fn doctor(allowed: HostAuthorized<permission::Monitor>) -> Json<Items<Check>> {
    Json(Items { items: allowed.service.monitor().doctor_for(&allowed.caller).await })
}

async fn hosts(
    allowed: HostAuthorized<permission::Monitor>,
) -> Result<Json<Items<HostView>>, Problem> {
    Ok(Json(Items { items: allowed.service.monitor().hosts().await? }))
}

/// A change of a host.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChangeHost {
    /// Whether it gives its companies away and takes none.
    pub is_draining: bool,
}

async fn change_host(
    allowed: HostAuthorized,
    PathParam(HostId(id)): PathParam<HostId>,
    Body(request): Body<ChangeHost>,
) -> Result<Json<HostView>, Problem> {
    let changed = allowed.service.monitor().drain(id, request.is_draining).await?;
    changed.map(Json).ok_or_else(|| {
        let detail = format!("there is no host {id}; `memhost cluster list` shows those that run");
        Problem::new(ProblemCode::NoHost, detail)
    })
}

async fn plugins(allowed: HostAuthorized) -> Json<PluginView> {
    Json(allowed.service.control().plugins())
}

async fn secrets(
    allowed: Authorized<permission::View>,
) -> Result<Json<Items<SecretView>>, Problem> {
    Ok(Json(Items { items: allowed.service.control().secrets(&allowed.company).await? }))
}

async fn set_secret(
    allowed: Authorized<permission::Establish>,
    PathParam(SecretName(name)): PathParam<SecretName>,
    Body(request): Body<SetSecret>,
) -> Result<Json<SecretView>, Problem> {
    Ok(Json(
        allowed
            .service
            .control()
            .set_secret(&allowed.caller, &allowed.company, &name, request)
            .await?,
    ))
}

async fn remove_secret(
    allowed: Authorized<permission::Administer>,
    PathParam(SecretName(name)): PathParam<SecretName>,
) -> Result<NoContent, Problem> {
    allowed.service.control().remove_secret(&allowed.caller, &allowed.company, &name).await?;
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
    allowed: Authorized<permission::View>,
    Query(query): Query<ActivityQuery>,
) -> Result<Json<ActivityPage>, Problem> {
    Ok(Json(allowed.service.control().activity(&allowed.company, query.cursor.as_deref()).await?))
}

async fn scan_plugins(allowed: HostAuthorized) -> Json<PluginView> {
    allowed.service.control().scan_plugins().await;
    Json(allowed.service.control().plugins())
}

async fn operations(
    allowed: Authorized<permission::View>,
    ListQuery { filter, page }: ListQuery<OperationFilter>,
) -> Result<Json<OperationPage>, Problem> {
    let limit = page.limit.unwrap_or(limits::DEFAULT_LIMIT);
    Ok(Json(
        allowed
            .service
            .control()
            .operations(&allowed.company, &filter, page.cursor.as_deref(), limit)
            .await?,
    ))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExplainQuery {
    /// Also ask the provider how it answers the same request now.
    #[serde(default)]
    again: bool,
}

async fn explain_operation(
    allowed: Authorized<permission::View>,
    PathParam(id): PathParam<OperationId>,
    Query(query): Query<ExplainQuery>,
) -> Result<Json<ExplainedOperation>, Problem> {
    let Authorized { service, caller, company, .. } = allowed;
    Ok(Json(service.control().explain_operation(&caller, &company, id, query.again).await?))
}

async fn operation(
    allowed: Authorized<permission::View>,
    PathParam(id): PathParam<OperationId>,
) -> Result<Json<Operation>, Problem> {
    Ok(Json(allowed.service.control().operation(&allowed.company, id).await?))
}
