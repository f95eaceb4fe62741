//! Events of sessions and tools.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use jiff::Timestamp;
use serde::Deserialize;

use super::control::Items;
use crate::contract::{Event, EventFilter, EventType, NewEvent};
use crate::edge::Problem;
use crate::edge::{Body, Query};
use crate::edge::{Emitting, In, Viewing};
use crate::service::{Page, Service};

/// The route below `/runtime/v1/companies/{company}`.
pub(super) fn runtime_routes() -> Router<Arc<Service>> {
    Router::new().route("/events", post(emit))
}

/// The route below `/control/v1/companies/{company}`.
pub(super) fn routes() -> Router<Arc<Service>> {
    Router::new().route("/events", get(list))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewEvents {
    events: Vec<NewEvent>,
}

async fn emit(
    State(service): State<Arc<Service>>,
    allowed: In<Emitting>,
    Body(request): Body<NewEvents>,
) -> Result<(StatusCode, Json<Items<Event>>), Problem> {
    let items = service.emit(&allowed.caller, &allowed.company, request.events).await?;
    Ok((StatusCode::CREATED, Json(Items { items })))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EventQuery {
    project_id: Option<String>,
    session_id: Option<String>,
    tool_id: Option<String>,
    r#type: Option<EventType>,
    agent_kind: Option<String>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    cursor: Option<String>,
    limit: Option<u32>,
}

async fn list(
    State(service): State<Arc<Service>>,
    allowed: In<Viewing>,
    Query(query): Query<EventQuery>,
) -> Result<Json<Page<Event>>, Problem> {
    let EventQuery { project_id, session_id, tool_id, r#type, agent_kind, since, until, cursor, limit } = query;
    let filter = EventFilter { project_id, session_id, tool_id, r#type, agent_kind, since, until };
    Ok(Json(service.events(&allowed.company, &filter, cursor.as_deref(), limit)?))
}
