//! The control plane of bindings. A binding's revision is its entity tag: `if-match` makes a change only to what the caller
//! has seen.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with, put_with};
use aide::generate::GenContext;
use aide::openapi::{self, Operation};
use aide::{OperationInput, OperationOutput};
use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::about;
use super::control::Items;
use crate::Problem;
use crate::{Administering, Authorized, Granting, Resolving, Viewing};
use crate::{Body, NoContent, PathParam, Query, document};
use memhost_core::bindings::{ResolutionStep, Why};
use memhost_core::{Act, BindingView, CreateBinding, GrantsView, ResolvedView, Service, SetTarget, UpdateBinding};
use memhost_types::{AgentId, BindingKey, Grants, ProviderKey};

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    let keep = "What is absent stays as it is. `If-Match` makes it a change of exactly what you have seen.";
    ApiRouter::new()
        .api_route(
            "/bindings",
            get_with(list, about("listBindings", "List the bindings of a company", "")).post_with(
                create,
                about("createBinding", "Make a binding", "Its configuration is checked by its provider."),
            ),
        )
        .api_route(
            "/bindings/{key}",
            get_with(show, about("getBinding", "Show a binding", "Its revision is the entity tag."))
                .patch_with(update, about("updateBinding", "Change a binding", keep))
                .delete_with(
                    remove,
                    about("deleteBinding", "Delete a binding", "With what its provider has stored through the host."),
                ),
        )
        .api_route(
            "/bindings/{key}/grants",
            get_with(grants, about("getGrants", "Show what a provider was granted, and what it asks for", ""))
                .put_with(
                    set_grants,
                    about(
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
                about(
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
                about(
                    "resolveBinding",
                    "Tell which binding answers, and which rule says so",
                    "For an agent: for itself, and without what the binding is made of.",
                ),
            ),
        )
        .api_route(
            "/targets",
            put_with(set_target, about("setTarget", "Point the company or an agent at a binding", "")),
        )
        .with_path_items(|item| item.tag("bindings"))
}

/// The revision that the caller has seen; none where it does not care.
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
                Err(Problem::new(StatusCode::BAD_REQUEST, "invalid_request", detail).at("if-match"))
            }
        }
    }
}

impl OperationInput for IfMatch {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        let description =
            "The `ETag` of the binding as you have seen it: another revision is a problem `stale_revision`.";
        document::header::<EntityTag>(operation, "If-Match", description);
    }
}

/// A revision between quotation marks, or `*` for any.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes a header")]
struct EntityTag(#[schemars(length(min = 1), regex(pattern = "^(\\*|\"[0-9]+\")$"))] String);

/// A binding with its entity tag.
struct Tagged<const STATUS: u16>(BindingView);

impl<const STATUS: u16> OperationOutput for Tagged<STATUS> {
    type Inner = BindingView;

    fn inferred_responses(
        ctx: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<openapi::StatusCode>, openapi::Response)> {
        let shown = Json::<BindingView>::operation_response(ctx, operation);
        shown.map(|shown| (Some(openapi::StatusCode::Code(STATUS)), shown)).into_iter().collect()
    }
}

impl<const STATUS: u16> IntoResponse for Tagged<STATUS> {
    fn into_response(self) -> Response {
        let tag = HeaderValue::from_str(&format!("\"{}\"", self.0.binding.revision));
        let status = StatusCode::from_u16(STATUS).unwrap_or_default();
        let mut response = (status, Json(self.0)).into_response();
        if let Ok(tag) = tag {
            response.headers_mut().insert(ETAG, tag);
        }
        response
    }
}

async fn list(
    State(service): State<Arc<Service>>,
    allowed: Authorized<Viewing>,
) -> Result<Json<Items<BindingView>>, Problem> {
    Ok(Json(Items { items: service.bindings(&allowed.company).await? }))
}

async fn create(
    State(service): State<Arc<Service>>,
    allowed: Authorized<Administering>,
    Body(request): Body<CreateBinding>,
) -> Result<Tagged<201>, Problem> {
    let made = service.create_binding(&allowed.caller, &allowed.company, request).await?;
    Ok(Tagged(made))
}

async fn show(
    State(service): State<Arc<Service>>,
    allowed: Authorized<Viewing>,
    PathParam(key): PathParam<BindingKey>,
) -> Result<Tagged<200>, Problem> {
    Ok(Tagged(service.binding(&allowed.company, &key).await?))
}

async fn update(
    State(service): State<Arc<Service>>,
    allowed: Authorized<Administering>,
    PathParam(key): PathParam<BindingKey>,
    IfMatch(seen): IfMatch,
    Body(mut request): Body<UpdateBinding>,
) -> Result<Tagged<200>, Problem> {
    request.revision = request.revision.or(seen);
    Ok(Tagged(service.update_binding(&allowed.caller, &allowed.company, &key, request).await?))
}

async fn remove(
    State(service): State<Arc<Service>>,
    allowed: Authorized<Administering>,
    PathParam(key): PathParam<BindingKey>,
    IfMatch(seen): IfMatch,
) -> Result<NoContent, Problem> {
    service.delete_binding(&allowed.caller, &allowed.company, &key, seen).await?;
    Ok(NoContent)
}

async fn grants(
    State(service): State<Arc<Service>>,
    allowed: Authorized<Viewing>,
    PathParam(key): PathParam<BindingKey>,
) -> Result<Json<GrantsView>, Problem> {
    Ok(Json(service.grants(&allowed.company, &key)?))
}

async fn set_grants(
    State(service): State<Arc<Service>>,
    allowed: Authorized<Granting>,
    PathParam(key): PathParam<BindingKey>,
    IfMatch(seen): IfMatch,
    Body(grants): Body<Grants>,
) -> Result<Json<GrantsView>, Problem> {
    Ok(Json(service.set_grants(&allowed.caller, &allowed.company, &key, seen, grants).await?))
}

async fn reset(
    State(service): State<Arc<Service>>,
    allowed: Authorized<Administering>,
    PathParam(key): PathParam<BindingKey>,
) -> Result<Tagged<200>, Problem> {
    Ok(Tagged(service.reset_binding(&allowed.caller, &allowed.company, &key).await?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ResolveQuery {
    /// Who asks; absent: the company.
    agent_id: Option<AgentId>,
    /// What would be named in a request.
    binding_key: Option<BindingKey>,
}

/// Which binding answers, for somebody who may not look at it.
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

/// What anybody may know of a binding.
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

/// What the caller may know.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum ResolvedOrBrief {
    /// For those who may look at bindings.
    Whole(Box<ResolvedView>),
    /// For everybody else.
    Brief(BriefResolved),
}

/// An agent asks for itself, and for nobody else; what a binding is made of is for those who may look at it.
async fn resolve(
    State(service): State<Arc<Service>>,
    allowed: Authorized<Resolving>,
    Query(query): Query<ResolveQuery>,
) -> Result<Json<ResolvedOrBrief>, Problem> {
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
    allowed: Authorized<Administering>,
    Body(request): Body<SetTarget>,
) -> Result<NoContent, Problem> {
    service.set_target(&allowed.caller, &allowed.company, request).await?;
    Ok(NoContent)
}
