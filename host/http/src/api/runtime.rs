//! The runtime plane: the plan's operations, two ways to look into a provider, and its records out and in. Bodies and answers are the plan's types, unchanged.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::post_with;
use aide::transform::TransformOperation;
use axum::extract::State;
use axum::http::StatusCode;

use super::about;
use crate::Authenticated;
use crate::Problem;
use crate::{Body, Company, WithRateLimit, document};
use memhost_core::{Act, Service};
use memhost_types::{
    BrowsePage, BrowseRequest, CaptureRequest, CaptureResponse, CompanyId, ContextBundle, CorrectRequest,
    CorrectResponse, Explanation, ExportPage, ExportRequest, ForgetRequest, ForgetResponse, GetRequest, GetResponse,
    ImportRequest, ImportResponse, ListPage, ListRequest, OperationKind, QueryRequest, Scope, UpsertRequest,
    UpsertResponse,
};

/// The routes below `/runtime/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    use OperationKind as Kind;
    ApiRouter::new()
        .api_route("/capture", post_with(capture, does(Kind::Capture, "capture", "Take in something that happened")))
        .api_route("/records", post_with(upsert, does(Kind::RecordUpsert, "upsertRecords", "Write curated records")))
        .api_route("/query", post_with(query, does(Kind::Query, "query", "Find what fits, best first")))
        .api_route("/list", post_with(list, does(Kind::List, "listRecords", "List records, page by page")))
        .api_route("/get", post_with(get, does(Kind::Get, "getRecord", "Read one record")))
        .api_route("/forget", post_with(forget, does(Kind::Forget, "forget", "Make records unreachable")))
        .api_route("/correct", post_with(correct, does(Kind::Correct, "correct", "Say that a record is wrong")))
        .api_route("/explain", post_with(explain, does(Kind::Explain, "explainQuery", "Tell how a query is answered")))
        .api_route("/browse", post_with(browse, does(Kind::Browse, "browse", "Look at the provider's own tree")))
        .api_route(
            "/export",
            post_with(export_records, does(Kind::Export, "exportRecords", "Read everything, part by part")),
        )
        .api_route(
            "/import",
            post_with(import_records, does(Kind::Import, "importRecords", "Take an export's lines in")),
        )
        .with_path_items(|item| item.tag("memory"))
}

fn does(
    kind: OperationKind,
    id: &'static str,
    summary: &'static str,
) -> impl FnOnce(TransformOperation<'_>) -> TransformOperation<'_> {
    let description = "Leaves a record in the operation log, also where it is refused.";
    move |mut operation| {
        document::for_whom(operation.inner_mut(), Act::Operate(kind));
        about(id, summary, description)(operation)
    }
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
            Authenticated(caller): Authenticated,
            Company(company): Company,
            Body(request): Body<$request>,
        ) -> Result<WithRateLimit<$response>, Problem> {
            same_company(&company, &request.scope)?;
            let (named, agent) = (request.binding_key.clone(), request.scope.agent_id.clone());
            let answer = service.$name(&caller, request).await?;
            let rate = service.rate(&company, agent.as_ref().or(caller.agent()), named.as_ref());
            Ok(WithRateLimit { answer, rate })
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
operation!(export_records, ExportRequest, ExportPage);
operation!(import_records, ImportRequest, ImportResponse);
