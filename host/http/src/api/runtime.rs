//! The runtime plane: the contract's operations, explain and browse, and export and import of a provider's records.
//! Bodies and answers are the contract's types, unchanged.

use std::sync::Arc;

use aide::axum::ApiRouter;

use super::routes;
use crate::failure::OperationCodes;
use crate::{AuthorizedByCore, Body, Failure, Json, Problem, WithRateLimit, permission};
use memhost_core::Service;
use memhost_types::{
    BrowsePage, BrowseRequest, CaptureRequest, CaptureResponse, CompanyId, ContextBundle, CorrectRequest,
    CorrectResponse, Explanation, ExportPage, ExportRequest, ForgetRequest, ForgetResponse, ForgottenSources,
    GetRequest, GetResponse, ImportRequest, ImportResponse, ListPage, ListRequest, QueryRequest, Scope, SourceRecords,
    SourcesRequest, UpsertRequest, UpsertResponse,
};

const RECORDED: &str = "The operation log has a record of it, also if it is refused.";

/// The routes below `/runtime/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    routes! { "memory":
        "/capture" { post capture => "capture", "Hand something that happened to the provider", RECORDED; }
        "/records" { post upsert => "upsertRecords", "Write curated records", RECORDED; }
        "/query" { post query => "query", "Find the records that fit, best first", RECORDED; }
        "/list" { post list => "listRecords", "List records, page by page", RECORDED; }
        "/get" { post get => "getRecord", "Read one record", RECORDED; }
        "/forget" { post forget => "forget", "Make records unreachable", RECORDED; }
        "/sources/forget" {
            post forget_sources => "forgetSources", "Forget what came from some sources, at every binding",
                "An operation for each binding has a record of it. What waits to be captured is given up, and what jobs \
                 make later of material that came before is forgotten, too.";
        }
        "/sources/list" {
            post list_sources => "listSources", "List what came from some sources, at every binding",
                "Without texts: from what the host knows of each record. No provider is asked.";
        }
        "/correct" { post correct => "correct", "Correct a record", RECORDED; }
        "/explain" { post explain => "explainQuery", "Explain how a query is answered", RECORDED; }
        "/browse" { post browse => "browse", "Read the provider's own tree of records", RECORDED; }
        "/export" { post export_records => "exportRecords", "Export all records, page by page", RECORDED; }
        "/import" { post import_records => "importRecords", "Import the lines of an export", RECORDED; }
    }
}

/// The company of a scope must be the company of the address.
pub(super) fn same_company(company: &CompanyId, scope: &Scope) -> Result<(), Problem> {
    if scope.company_id == *company {
        return Ok(());
    }
    let detail = format!("scope.companyId is not the company of the address, {company}");
    Err(Problem::invalid(detail).at("scope.companyId"))
}

macro_rules! operation {
    ($name:ident, $permission:ident, $request:ty, $response:ty) => {
        async fn $name(
            AuthorizedByCore { service, caller, company, .. }: AuthorizedByCore<permission::$permission>,
            Body(request): Body<$request>,
        ) -> Result<WithRateLimit<$response>, Failure<OperationCodes>> {
            same_company(&company, &request.scope)?;
            let (named, agent) = (request.binding_key.clone(), request.scope.agent_id.clone());
            let rate = || service.rate(&company, agent.as_ref().or(caller.agent()), named.as_ref());
            match service.$name(&caller, request).await {
                Ok(answer) => Ok(WithRateLimit { answer, rate: rate() }),
                Err(error) => Err(Problem::from(error).with_rate(rate).into()),
            }
        }
    };
}

async fn forget_sources(
    AuthorizedByCore { service, caller, company, .. }: AuthorizedByCore<permission::ForgetSources>,
    Body(request): Body<SourcesRequest>,
) -> Result<Json<ForgottenSources>, Failure<OperationCodes>> {
    same_company(&company, &request.scope)?;
    Ok(Json(service.forget_sources(&caller, request).await?))
}

async fn list_sources(
    AuthorizedByCore { service, caller, company, .. }: AuthorizedByCore<permission::List>,
    Body(request): Body<SourcesRequest>,
) -> Result<Json<SourceRecords>, Failure<OperationCodes>> {
    same_company(&company, &request.scope)?;
    Ok(Json(service.list_sources(&caller, request).await?))
}

operation!(capture, Capture, CaptureRequest, CaptureResponse);
operation!(upsert, RecordUpsert, UpsertRequest, UpsertResponse);
operation!(query, Query, QueryRequest, ContextBundle);
operation!(list, List, ListRequest, ListPage);
operation!(get, Get, GetRequest, GetResponse);
operation!(forget, Forget, ForgetRequest, ForgetResponse);
operation!(correct, Correct, CorrectRequest, CorrectResponse);
operation!(explain, Explain, QueryRequest, Explanation);
operation!(browse, Browse, BrowseRequest, BrowsePage);
operation!(export_records, Export, ExportRequest, ExportPage);
operation!(import_records, Import, ImportRequest, ImportResponse);
