//! The runtime plane: the contract's operations, explain and browse, and export and import of a provider's records.
//! Bodies and answers are the contract's types, unchanged.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::post_with;
use aide::transform::TransformOperation;
use axum::extract::State;

use super::describe;
use crate::failure::OperationCodes;
use crate::{AuthorizedByCore, Body, Failure, Problem, WithRateLimit, permission};
use memhost_core::Service;
use memhost_types::{
    BrowsePage, BrowseRequest, CaptureRequest, CaptureResponse, CompanyId, ContextBundle, CorrectRequest,
    CorrectResponse, Explanation, ExportPage, ExportRequest, ForgetRequest, ForgetResponse, GetRequest, GetResponse,
    ImportRequest, ImportResponse, ListPage, ListRequest, QueryRequest, Scope, UpsertRequest, UpsertResponse,
};

/// The routes below `/runtime/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    ApiRouter::new()
        .api_route("/capture", post_with(capture, recorded("capture", "Take in something that happened")))
        .api_route("/records", post_with(upsert, recorded("upsertRecords", "Write curated records")))
        .api_route("/query", post_with(query, recorded("query", "Find what fits, best first")))
        .api_route("/list", post_with(list, recorded("listRecords", "List records, page by page")))
        .api_route("/get", post_with(get, recorded("getRecord", "Read one record")))
        .api_route("/forget", post_with(forget, recorded("forget", "Make records unreachable")))
        .api_route("/correct", post_with(correct, recorded("correct", "Say that a record is wrong")))
        .api_route("/explain", post_with(explain, recorded("explainQuery", "Tell how a query is answered")))
        .api_route("/browse", post_with(browse, recorded("browse", "Look at the provider's own tree")))
        .api_route("/export", post_with(export_records, recorded("exportRecords", "Read everything, part by part")))
        .api_route("/import", post_with(import_records, recorded("importRecords", "Take an export's lines in")))
        .with_path_items(|item| item.tag("memory"))
}

/// Describes a memory operation.
fn recorded(id: &'static str, summary: &'static str) -> impl FnOnce(TransformOperation<'_>) -> TransformOperation<'_> {
    describe(id, summary, "Leaves a record in the operation log, also where it is refused.")
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
            State(service): State<Arc<Service>>,
            AuthorizedByCore { caller, company, .. }: AuthorizedByCore<permission::$permission>,
            Body(request): Body<$request>,
        ) -> Result<WithRateLimit<$response>, Failure<OperationCodes>> {
            same_company(&company, &request.scope)?;
            let (named, agent) = (request.binding_key.clone(), request.scope.agent_id.clone());
            let answer = service.$name(&caller, request).await?;
            let rate = service.rate(&company, agent.as_ref().or(caller.agent()), named.as_ref());
            Ok(WithRateLimit { answer, rate })
        }
    };
}

operation!(capture, Capture, CaptureRequest, CaptureResponse);
operation!(upsert, Upsert, UpsertRequest, UpsertResponse);
operation!(query, Query, QueryRequest, ContextBundle);
operation!(list, List, ListRequest, ListPage);
operation!(get, Get, GetRequest, GetResponse);
operation!(forget, Forget, ForgetRequest, ForgetResponse);
operation!(correct, Correct, CorrectRequest, CorrectResponse);
operation!(explain, Explain, QueryRequest, Explanation);
operation!(browse, Browse, BrowseRequest, BrowsePage);
operation!(export_records, Export, ExportRequest, ExportPage);
operation!(import_records, Import, ImportRequest, ImportResponse);
