//! Events of sessions and tools, of any agent framework.

use std::sync::Arc;

use axum::extract::State;
use jiff::civil::Date;
use maud::{Markup, html};
use serde::Deserialize;

use super::kit::{Asked, Col, Filter, Page, Row, Tone, View, badge, duration_us, empty, pager, table, time};
use super::pieces::{self, ROWS};
use memhost_core::Service;
use memhost_http::{Authorized, Problem, Viewing};
use memhost_types::{Event, EventFilter, EventType};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct EventQuery {
    r#type: Option<EventType>,
    agent_kind: Option<String>,
    project_id: Option<String>,
    session_id: Option<String>,
    tool_id: Option<String>,
    since: Option<Date>,
    until: Option<Date>,
    cursor: Option<String>,
}

/// Every type, with what it is called here.
const TYPES: [(&str, &str); 7] = [
    ("session.started", "session started"),
    ("session.stopped", "session stopped"),
    ("tool_call.started", "tool call started"),
    ("tool_call.succeeded", "tool call succeeded"),
    ("tool_call.failed", "tool call failed"),
    ("memory.saved", "memory saved"),
    ("memory.recalled", "memory recalled"),
];

fn what(r#type: EventType) -> Markup {
    let (tone, called) = match r#type {
        EventType::SessionStarted => (Tone::Plain, TYPES[0].1),
        EventType::SessionStopped => (Tone::Plain, TYPES[1].1),
        EventType::ToolCallStarted => (Tone::Busy, TYPES[2].1),
        EventType::ToolCallSucceeded => (Tone::Good, TYPES[3].1),
        EventType::ToolCallFailed => (Tone::Bad, TYPES[4].1),
        EventType::MemorySaved => (Tone::Good, TYPES[5].1),
        EventType::MemoryRecalled => (Tone::Good, TYPES[6].1),
    };
    badge(tone, called)
}

pub(super) async fn list(
    State(service): State<Arc<Service>>,
    view: View,
    allowed: Authorized<Viewing>,
    asked: Asked<EventQuery>,
) -> Result<Markup, Problem> {
    let query = &asked.query;
    let (since, until) = pieces::moments(query.since, query.until);
    let filter = EventFilter {
        project_id: query.project_id.clone(),
        session_id: query.session_id.clone(),
        tool_id: query.tool_id.clone(),
        r#type: query.r#type,
        agent_kind: query.agent_kind.clone(),
        since,
        until,
    };
    let page = service.events(&allowed.company, &filter, query.cursor.as_deref(), ROWS)?;
    let columns = [
        Col::text("What"),
        Col::text("Agent"),
        Col::text("Session"),
        Col::text("Project").wide(),
        Col::text("Tool"),
        Col::number("Took").wide(),
        Col::text("When"),
        Col::text("Error").long(),
    ];
    let rows = page.items.iter().map(|event| row(&view, &asked, event));
    let body = html! {
        (Filter::new(&view, &asked)
            .choice("type", "What", TYPES)
            .text("agentKind", "Agent")
            .text("sessionId", "Session")
            .text("toolId", "Tool")
            .text("projectId", "Project")
            .more()
            .day("since", "From")
            .day("until", "Until"))
        div #rows {
            @if page.items.is_empty() && asked.is_filtered() {
                (empty("No event is like that", &html! { a href=(view.path) { "Show all events" } }))
            } @else if page.items.is_empty() {
                (empty("No event yet", &html! {
                    code { "memhost agent-hooks claude install" } " and " code { "memhost agent-hooks codex install" }
                    " have those tools tell of their sessions here."
                }))
            } @else {
                (table("Events", &columns, rows))
                (pager(&view, &asked, page.next_cursor.as_deref(), "events"))
            }
        }
    };
    Ok(Page::new(&view, "Events", "What sessions and tools of agents did, newest first.").render(&body))
}

fn row(view: &View, asked: &Asked<EventQuery>, kept: &Event) -> Row {
    let event = &kept.event;
    // What a session or a tool did is one step away.
    let only = |name: &str, value: &str| html! { a href=(asked.with(view, name, Some(value))) { (value) } };
    let agent = match &event.agent_id {
        Some(agent) => format!("{agent} ({})", event.agent_kind),
        None => event.agent_kind.clone(),
    };
    Row::new()
        .key(kept.id)
        .cell(what(event.r#type))
        .cell(agent)
        .cell(only("sessionId", &event.session_id))
        .cell(only("projectId", &event.project_id))
        .maybe(event.tool_id.as_ref().map(|tool| only("toolId", tool)))
        .maybe(event.duration_ms.map(|ms| duration_us(ms.saturating_mul(1_000))))
        .cell(time(event.occurred_at.unwrap_or(kept.received_at), view.now))
        .maybe(event.error.as_deref())
}
