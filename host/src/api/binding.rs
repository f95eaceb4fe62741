//! The control plane of bindings. A binding's revision is its entity tag: `if-match` makes a change only to what the caller
//! has seen.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, State};
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;

use super::control::Items;
use crate::contract::{AgentId, BindingKey, Grants};
use crate::edge::Problem;
use crate::edge::{Administering, Granting, In, Resolving, Viewing};
use crate::edge::{Body, Query, parse};
use crate::service::{Act, BindingView, CreateBinding, GrantsView, ResolvedView, Service, SetTarget, UpdateBinding};

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn routes() -> Router<Arc<Service>> {
    Router::new()
        .route("/bindings", get(list).post(create))
        .route("/bindings/{key}", get(show).patch(update).delete(remove))
        .route("/bindings/{key}/grants", get(grants).put(set_grants))
        .route("/bindings/{key}/reset", post(reset))
        .route("/resolve", get(resolve))
        .route("/targets", axum::routing::put(set_target))
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

/// A binding with its entity tag.
struct Tagged(StatusCode, BindingView);

impl IntoResponse for Tagged {
    fn into_response(self) -> Response {
        let tag = HeaderValue::from_str(&format!("\"{}\"", self.1.binding.revision));
        let mut response = (self.0, Json(self.1)).into_response();
        if let Ok(tag) = tag {
            response.headers_mut().insert(ETAG, tag);
        }
        response
    }
}

async fn list(State(service): State<Arc<Service>>, allowed: In<Viewing>) -> Result<Json<Items<BindingView>>, Problem> {
    Ok(Json(Items { items: service.bindings(&allowed.company)? }))
}

async fn create(
    State(service): State<Arc<Service>>,
    allowed: In<Administering>,
    Body(request): Body<CreateBinding>,
) -> Result<Tagged, Problem> {
    let made = service.create_binding(&allowed.caller, &allowed.company, request).await?;
    Ok(Tagged(StatusCode::CREATED, made))
}

async fn show(
    State(service): State<Arc<Service>>,
    Path((_, key)): Path<(String, String)>,
    allowed: In<Viewing>,
) -> Result<Tagged, Problem> {
    Ok(Tagged(StatusCode::OK, service.binding(&allowed.company, &parse("bindingKey", &key)?)?))
}

async fn update(
    State(service): State<Arc<Service>>,
    Path((_, key)): Path<(String, String)>,
    allowed: In<Administering>,
    IfMatch(seen): IfMatch,
    Body(mut request): Body<UpdateBinding>,
) -> Result<Tagged, Problem> {
    let key = parse("bindingKey", &key)?;
    request.revision = request.revision.or(seen);
    Ok(Tagged(StatusCode::OK, service.update_binding(&allowed.caller, &allowed.company, &key, request).await?))
}

async fn remove(
    State(service): State<Arc<Service>>,
    Path((_, key)): Path<(String, String)>,
    allowed: In<Administering>,
    IfMatch(seen): IfMatch,
) -> Result<StatusCode, Problem> {
    service.delete_binding(&allowed.caller, &allowed.company, &parse("bindingKey", &key)?, seen).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn grants(
    State(service): State<Arc<Service>>,
    Path((_, key)): Path<(String, String)>,
    allowed: In<Viewing>,
) -> Result<Json<GrantsView>, Problem> {
    Ok(Json(service.grants(&allowed.company, &parse("bindingKey", &key)?)?))
}

async fn set_grants(
    State(service): State<Arc<Service>>,
    Path((_, key)): Path<(String, String)>,
    allowed: In<Granting>,
    IfMatch(seen): IfMatch,
    Body(grants): Body<Grants>,
) -> Result<Json<GrantsView>, Problem> {
    let key = parse("bindingKey", &key)?;
    Ok(Json(service.set_grants(&allowed.caller, &allowed.company, &key, seen, grants).await?))
}

async fn reset(
    State(service): State<Arc<Service>>,
    Path((_, key)): Path<(String, String)>,
    allowed: In<Administering>,
) -> Result<Tagged, Problem> {
    let key = parse("bindingKey", &key)?;
    Ok(Tagged(StatusCode::OK, service.reset_binding(&allowed.caller, &allowed.company, &key).await?))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ResolveQuery {
    agent_id: Option<AgentId>,
    binding_key: Option<BindingKey>,
}

/// An agent asks for itself, and for nobody else; what a binding is made of is for those who may look at it.
async fn resolve(
    State(service): State<Arc<Service>>,
    allowed: In<Resolving>,
    Query(query): Query<ResolveQuery>,
) -> Result<Response, Problem> {
    let agent = service.own_agent(&allowed.caller, &allowed.company, query.agent_id).await?;
    let resolved = service.resolve_binding(&allowed.company, agent.as_ref(), query.binding_key.as_ref())?;
    if service.allows(&allowed.caller, Act::View, &allowed.company) {
        return Ok(Json(resolved).into_response());
    }
    let ResolvedView { binding: BindingView { binding, .. }, why, steps } = resolved;
    let binding = json!({ "key": binding.key, "providerKey": binding.provider_key, "enabled": binding.enabled });
    Ok(Json(json!({ "binding": binding, "why": why, "steps": steps })).into_response())
}

async fn set_target(
    State(service): State<Arc<Service>>,
    allowed: In<Administering>,
    Body(request): Body<SetTarget>,
) -> Result<StatusCode, Problem> {
    service.set_target(&allowed.caller, &allowed.company, request).await?;
    Ok(StatusCode::NO_CONTENT)
}
