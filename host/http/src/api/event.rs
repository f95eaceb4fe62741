//! Events of sessions and tools.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;

use super::control::Items;
use super::describe;
use crate::{Authorized, Body, Created, Problem, Query, permission};
use memhost_core::{Page, Service};
use memhost_types::schema::{cursor, items, page_size};
use memhost_types::{Event, EventFilter, EventType, NewEvent};

/// The route below `/runtime/v1/companies/{company}`.
pub(super) fn runtime_routes() -> ApiRouter<Arc<Service>> {
    let known = "An event that came in before under its `eventId` is answered again and kept once.";
    ApiRouter::new()
        .api_route("/events", post_with(emit, describe("emitEvents", "Tell of what sessions and tools did", known)))
        .with_path_items(|item| item.tag("events"))
}

/// The route below `/control/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    ApiRouter::new()
        .api_route("/events", get_with(list, describe("listEvents", "List events that match", "Newest first.")))
        .with_path_items(|item| item.tag("events"))
}

/// Events as they are sent.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewEvents {
    /// In the order in which they happened.
    #[schemars(transform = items)]
    events: Vec<NewEvent>,
}

async fn emit(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Emit>,
    Body(request): Body<NewEvents>,
) -> Result<Created<Items<Event>>, Problem> {
    let items = service.emit(&allowed.caller, &allowed.company, request.events).await?;
    Ok(Created(Items { items }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EventQuery {
    project_id: Option<String>,
    session_id: Option<String>,
    tool_id: Option<String>,
    r#type: Option<EventType>,
    agent_kind: Option<String>,
    /// Came in at this moment or later.
    since: Option<Timestamp>,
    /// Came in before this moment.
    until: Option<Timestamp>,
    /// Where the page begins: `nextCursor` of the page before.
    #[schemars(transform = cursor)]
    cursor: Option<String>,
    /// How many at most.
    #[schemars(transform = page_size)]
    limit: Option<u32>,
}

async fn list(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::View>,
    Query(query): Query<EventQuery>,
) -> Result<Json<Page<Event>>, Problem> {
    let EventQuery { project_id, session_id, tool_id, r#type, agent_kind, since, until, cursor, limit } = query;
    let filter = EventFilter { project_id, session_id, tool_id, r#type, agent_kind, since, until };
    Ok(Json(service.events(&allowed.company, &filter, cursor.as_deref(), limit).await?))
}
