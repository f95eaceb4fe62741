//! The control plane of bindings. A binding's revision is its entity tag: with `if-match`, a change applies only to the
//! revision that the caller has seen.

use std::sync::Arc;

use aide::OperationInput;
use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with, put_with};
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::header::IF_MATCH;
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::control::Items;
use super::describe;
use crate::failure::{BindingCodes, BindingStateCodes, GrantCodes, ResolveCodes, TargetCodes};
use crate::{
    Authorized, Body, EntityTagged, Failure, NoContent, PathParam, Problem, ProblemCode, Query, document, permission,
};
use memhost_core::{
    Act, BindingView, CreateBinding, GrantsView, ResolutionStep, ResolvedView, Service, SetTarget, UpdateBinding, Why,
};
use memhost_types::{AgentId, BindingKey, Grants, ProviderKey};

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    let keep = "What is absent stays as it is. `If-Match` makes it a change of exactly what you have seen.";
    ApiRouter::new()
        .api_route(
            "/bindings",
            get_with(list, describe("listBindings", "List the bindings of a company", "")).post_with(
                create,
                describe("createBinding", "Make a binding", "Its configuration is checked by its provider."),
            ),
        )
        .api_route(
            "/bindings/{key}",
            get_with(show, describe("getBinding", "Show a binding", "Its revision is the entity tag."))
                .patch_with(update, describe("updateBinding", "Change a binding", keep))
                .delete_with(
                    remove,
                    describe(
                        "deleteBinding",
                        "Delete a binding",
                        "With what its provider has stored through the host.",
                    ),
                ),
        )
        .api_route(
            "/bindings/{key}/grants",
            get_with(grants, describe("getGrants", "Show what a provider was granted, and what it asks for", ""))
                .put_with(
                    set_grants,
                    describe(
                        "setGrants",
                        "Decide what a provider may reach",
                        "As a whole: what is left out is taken away.",
                    ),
                ),
        )
        .api_route(
            "/bindings/{key}/reset",
            post_with(
                reset,
                describe(
                    "resetBinding",
                    "Close a binding's circuit breaker",
                    "Versions that were kept from it may be tried again.",
                ),
            ),
        )
        .api_route(
            "/resolve",
            get_with(
                resolve,
                describe(
                    "resolveBinding",
                    "Tell which binding answers, and which rule says so",
                    "For an agent: for itself, and without what the binding is made of.",
                ),
            ),
        )
        .api_route(
            "/targets",
            put_with(set_target, describe("setTarget", "Point the company or an agent at a binding", "")),
        )
        .with_path_items(|item| item.tag("bindings"))
}

/// The revision that the caller has seen. None without the header, and for `*`.
struct IfMatch(Option<u64>);

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get(IF_MATCH) else { return Ok(Self(None)) };
        let text = value.to_str().unwrap_or_default().trim();
        if text == "*" {
            return Ok(Self(None));
        }
        let revision =
            text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).and_then(|text| text.parse().ok());
        match revision {
            Some(revision) => Ok(Self(Some(revision))),
            None => {
                let detail =
                    "`if-match` is not an entity tag of a binding; send the `etag` of the answer that you have";
                Err(Problem::invalid(detail).at("if-match"))
            }
        }
    }
}

impl OperationInput for IfMatch {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        let description =
            "The `ETag` of the binding as you have seen it: another revision is a problem `stale_revision`.";
        document::header::<EntityTag>(operation, "If-Match", description);
        document::problems(operation, [ProblemCode::InvalidRequest, ProblemCode::StaleRevision]);
    }
}

/// A revision between quotation marks, or `*` for any.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes a header")]
struct EntityTag(#[schemars(length(min = 1), regex(pattern = "^(\\*|\"[0-9]+\")$"))] String);

async fn list(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::View>,
) -> Result<Json<Items<BindingView>>, Problem> {
    Ok(Json(Items { items: service.bindings(&allowed.company).await? }))
}

async fn create(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Administer>,
    Body(request): Body<CreateBinding>,
) -> Result<EntityTagged<201>, Failure<BindingCodes>> {
    let made = service.create_binding(&allowed.caller, &allowed.company, request).await?;
    Ok(EntityTagged(made))
}

async fn show(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::View>,
    PathParam(key): PathParam<BindingKey>,
) -> Result<EntityTagged<200>, Problem> {
    Ok(EntityTagged(service.binding(&allowed.company, &key).await?))
}

async fn update(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Administer>,
    PathParam(key): PathParam<BindingKey>,
    IfMatch(seen): IfMatch,
    Body(mut request): Body<UpdateBinding>,
) -> Result<EntityTagged<200>, Failure<BindingCodes>> {
    request.revision = request.revision.or(seen);
    Ok(EntityTagged(service.update_binding(&allowed.caller, &allowed.company, &key, request).await?))
}

async fn remove(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Administer>,
    PathParam(key): PathParam<BindingKey>,
    IfMatch(seen): IfMatch,
) -> Result<NoContent, Failure<BindingStateCodes>> {
    service.delete_binding(&allowed.caller, &allowed.company, &key, seen).await?;
    Ok(NoContent)
}

async fn grants(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::View>,
    PathParam(key): PathParam<BindingKey>,
) -> Result<Json<GrantsView>, Problem> {
    Ok(Json(service.grants(&allowed.company, &key)?))
}

async fn set_grants(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Grant>,
    PathParam(key): PathParam<BindingKey>,
    IfMatch(seen): IfMatch,
    Body(grants): Body<Grants>,
) -> Result<Json<GrantsView>, Failure<GrantCodes>> {
    Ok(Json(service.set_grants(&allowed.caller, &allowed.company, &key, seen, grants).await?))
}

async fn reset(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Administer>,
    PathParam(key): PathParam<BindingKey>,
) -> Result<EntityTagged<200>, Failure<BindingStateCodes>> {
    Ok(EntityTagged(service.reset_binding(&allowed.caller, &allowed.company, &key).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ResolveQuery {
    /// Who asks; absent: the company.
    agent_id: Option<AgentId>,
    /// What would be named in a request.
    binding_key: Option<BindingKey>,
}

/// The binding that answers, for callers without the permission to view bindings.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct BriefResolved {
    /// The one that answers.
    binding: BriefBinding,
    /// The rule that decides.
    why: Why,
    /// Every rule with what it says.
    steps: Vec<ResolutionStep>,
}

/// What every caller may know of a binding.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct BriefBinding {
    /// Unique in the company.
    key: BindingKey,
    /// Which provider answers.
    provider_key: ProviderKey,
    /// A disabled binding refuses every operation.
    enabled: bool,
}

/// The answer of `resolve`: its content depends on the caller's permissions.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum ResolvedOrBrief {
    /// For callers who may view bindings.
    Whole(Box<ResolvedView>),
    /// For all other callers.
    Brief(BriefResolved),
}

/// An agent resolves only for itself. The whole binding is shown only to callers who may view bindings.
async fn resolve(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Resolve>,
    Query(query): Query<ResolveQuery>,
) -> Result<Json<ResolvedOrBrief>, Failure<ResolveCodes>> {
    let agent = service.own_agent(&allowed.caller, &allowed.company, query.agent_id).await?;
    let resolved = service.resolve_binding(&allowed.company, agent.as_ref(), query.binding_key.as_ref()).await?;
    if service.allows(&allowed.caller, Act::View, &allowed.company) {
        return Ok(Json(ResolvedOrBrief::Whole(Box::new(resolved))));
    }
    let ResolvedView { binding: BindingView { binding, .. }, why, steps } = resolved;
    let binding = BriefBinding { key: binding.key, provider_key: binding.provider_key, enabled: binding.enabled };
    Ok(Json(ResolvedOrBrief::Brief(BriefResolved { binding, why, steps })))
}

async fn set_target(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Administer>,
    Body(request): Body<SetTarget>,
) -> Result<NoContent, Failure<TargetCodes>> {
    service.set_target(&allowed.caller, &allowed.company, request).await?;
    Ok(NoContent)
}
