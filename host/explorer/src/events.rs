//! Events of sessions and tools, of any agent framework.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};

use super::components::{
    Choice, Column, Control, FilterForm, ListParams, PAGE_SIZE, Page, Row, Tone, View, badge, duration_us, empty,
    filter_fields, pager, table, time,
};
use memhost_core::Service;
use memhost_http::{Authorized, Problem, permission};
use memhost_types::{Event, EventFilter, EventType};

filter_fields! {
    EventFilter {
        "type", "Type", Control::Select(types), read_text(r#type);
        "agentKind", "Agent", Control::Text, read_text(agent_kind);
        "sessionId", "Session", Control::Text, read_text(session_id);
        "toolId", "Tool", Control::Text, read_text(tool_id);
        "projectId", "Project", Control::Text, read_text(project_id);
        advanced:
        "since", "From", Control::Day, read_since(since);
        "until", "Until", Control::Day, read_until(until);
    }
}

/// Every type and its label.
const TYPES: [(&str, &str); 7] = [
    ("session.started", "session started"),
    ("session.stopped", "session stopped"),
    ("tool_call.started", "tool call started"),
    ("tool_call.succeeded", "tool call succeeded"),
    ("tool_call.failed", "tool call failed"),
    ("memory.saved", "memory saved"),
    ("memory.recalled", "memory recalled"),
];

fn types() -> Vec<Choice> {
    TYPES.map(|(name, label)| (name.to_owned(), label.to_owned())).to_vec()
}

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
    allowed: Authorized<permission::View>,
    params: ListParams<EventFilter>,
) -> Result<Markup, Problem> {
    let query = &params.query;
    let page = service.events(&allowed.company, &query.filter, query.cursor.as_deref(), PAGE_SIZE).await?;
    let columns = [
        Column::text("Type"),
        Column::text("Agent"),
        Column::text("Session"),
        Column::text("Project").wide(),
        Column::text("Tool"),
        Column::number("Duration").wide(),
        Column::text("Time"),
        Column::text("Error").long(),
    ];
    let rows = page.items.iter().map(|event| row(&view, &params, event));
    let body = html! {
        (FilterForm::of(&view, &params))
        div #rows {
            @if page.items.is_empty() && params.is_filtered() {
                (empty("No matching events", &html! { a href=(view.path) { "Show all events" } }))
            } @else if page.items.is_empty() {
                (empty("No events yet", &html! {
                    "Install the hooks of Claude Code or Codex: " code { "memhost agent-hooks claude install" } " or "
                    code { "memhost agent-hooks codex install" } "."
                }))
            } @else {
                (table("Events", &columns, rows))
                (pager(&view, &params, page.next_cursor.as_deref(), "events"))
            }
        }
    };
    Ok(Page::new(&view, "Events", "Sessions and tool calls of agents, newest first.").render(&body))
}

fn row(view: &View, params: &ListParams<EventFilter>, kept: &Event) -> Row {
    let event = &kept.event;
    // Each value links to the list with that filter.
    let only = |name: &str, value: &str| html! { a href=(params.with(view, name, Some(value))) { (value) } };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::check_fields;

    #[test]
    fn every_filter_reads_its_own_values() {
        check_fields::<EventFilter>();
    }
}
