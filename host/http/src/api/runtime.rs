//! The runtime plane: the contract's operations, explain and browse, and export and import of a
//! provider's records. Bodies and answers are the contract's types, unchanged.

use std::sync::Arc;

use aide::axum::ApiRouter;

use super::route_table::routes;
use crate::failure::OperationCodes;
use crate::{AuthorizedByCore, Body, Failure, Json, Problem, WithRateLimit, permission};
use memhost_core::Service;
use memhost_types::{
    CompanyId, ForgetScopeRequest, ForgottenScope, ForgottenSources, Scope, SourceRecords,
    SourcesRequest,
};

const RECORDED: &str = "The operation log has a record of it, also if it is refused.";

/// The routes below `/runtime/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    operations().merge(routes! { RUNTIME, "memory":
        "/scope/forget" {
            post forget_scope =>
                "forgetScope", "Forget all records written in a scope, at every binding or at one",
                "The scope names something beside the company. The operations of each binding have \
                 a record of it. What waits \
                 to be captured is discarded, and what jobs make later of material that came \
                 before is forgotten, too. \
                 Where `isComplete` is false, the same request goes on with what is left.";
        }
        "/sources/forget" {
            post forget_sources =>
                "forgetSources", "Forget what came from some sources, at every binding",
                "An operation for each binding has a record of it. What waits to be captured is \
                 discarded, and what jobs \
                 make later of material that came before is forgotten, too.";
        }
        "/sources/list" {
            post list_sources =>
                "listSources", "List what came from some sources, at every binding",
                "Without texts: from what the host knows of each record. No provider is asked.";
        }
    })
}

/// The company of a scope must be the company of the address.
pub(super) fn same_company(company: &CompanyId, scope: &Scope) -> Result<(), Problem> {
    if scope.company_id == *company {
        return Ok(());
    }
    let detail = format!("scope.companyId is not the company of the address, {company}");
    Err(Problem::invalid(detail).at("scope.companyId"))
}

/// The route of each kind of operation that a client asks for: its types and texts are in the table
/// of the kinds.
macro_rules! operations {
    ($($(#[$doc:meta])* $kind:ident = $json:literal, $effect:ident,
        [$($route:literal $name:ident($request:ty) -> $response:ty, $id:literal, $about:literal)?],
        $did:literal, $wanted:literal;)+) => {
        $($(
            async fn $name(
                AuthorizedByCore {
                    service, caller, company, ..
                }: AuthorizedByCore<permission::$kind>,
                Body(request): Body<$request>,
            ) -> Result<WithRateLimit<$response>, Failure<OperationCodes>> {
                same_company(&company, &request.scope)?;
                let (named, agent) = (request.binding_key.clone(), request.scope.agent_id.clone());
                let rate = || service.operations().rate(
                    &company, agent.as_ref().or(caller.agent()), named.as_ref(),
                );
                match service.operations().$name(&caller, request).await {
                    Ok(answer) => Ok(WithRateLimit { answer, rate: rate() }),
                    Err(error) => Err(Problem::from(error).with_rate(rate).into()),
                }
            }
        )?)+

        fn operations() -> ApiRouter<Arc<Service>> {
            routes! { RUNTIME, "memory": $($($route { post $name => $id, $about, RECORDED; })?)+ }
        }
    };
}

memhost_types::operation_kinds!(operations);

async fn forget_scope(
    AuthorizedByCore { service, caller, company, .. }: AuthorizedByCore<permission::Forget>,
    Body(request): Body<ForgetScopeRequest>,
) -> Result<Json<ForgottenScope>, Failure<OperationCodes>> {
    same_company(&company, &request.scope)?;
    Ok(Json(service.operations().forget_scope(&caller, request).await?))
}

async fn forget_sources(
    AuthorizedByCore { service, caller, company, .. }: AuthorizedByCore<permission::ForgetSources>,
    Body(request): Body<SourcesRequest>,
) -> Result<Json<ForgottenSources>, Failure<OperationCodes>> {
    same_company(&company, &request.scope)?;
    Ok(Json(service.operations().forget_sources(&caller, request).await?))
}

async fn list_sources(
    AuthorizedByCore { service, caller, company, .. }: AuthorizedByCore<permission::List>,
    Body(request): Body<SourcesRequest>,
) -> Result<Json<SourceRecords>, Failure<OperationCodes>> {
    same_company(&company, &request.scope)?;
    Ok(Json(service.operations().list_sources(&caller, request).await?))
}
