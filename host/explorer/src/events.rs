//! Events of sessions and tools, of any agent framework.

use maud::{Markup, html};

use super::components::{
    Choice, CompanyView, Control, ListParams, PAGE_SIZE, Page, Row, Tone, View, badge, duration_us,
    filter_fields, listing, long, number, time, wide, words,
};
use memhost_http::{Problem, permission};
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

/// Every type with its name in JSON and its colour.
const TYPES: [(EventType, &str, Tone); 8] = [
    (EventType::SessionStarted, "session.started", Tone::Plain),
    (EventType::SessionStopped, "session.stopped", Tone::Plain),
    (EventType::ToolCallStarted, "tool_call.started", Tone::Busy),
    (EventType::ToolCallSucceeded, "tool_call.succeeded", Tone::Good),
    (EventType::ToolCallFailed, "tool_call.failed", Tone::Bad),
    (EventType::ToolCallEnded, "tool_call.ended", Tone::Plain),
    (EventType::MemorySaved, "memory.saved", Tone::Good),
    (EventType::MemoryRecalled, "memory.recalled", Tone::Good),
];

fn types() -> Vec<Choice> {
    TYPES.map(|(_, name, _)| (name.to_owned(), label(name))).to_vec()
}

fn label(name: &str) -> String {
    words(name).replace('.', " ")
}

fn type_badge(r#type: EventType) -> Markup {
    let found = TYPES.iter().find(|(known, ..)| *known == r#type);
    html! { @if let Some((_, name, tone)) = found { (badge(*tone, &label(name))) } }
}

pub(super) async fn list(
    view: CompanyView<permission::View>,
    params: ListParams<EventFilter>,
) -> Result<Markup, Problem> {
    let query = &params.query;
    let page = view
        .service
        .tenancy()
        .events(&view.company, &query.filter, query.cursor.as_deref(), PAGE_SIZE)
        .await?;
    let rows = page.items.iter().map(|event| row(&view, &params, event));
    let none = html! {
        "Install the hooks of your agent tool: " code {
            "memhost agent-hooks --help"
        } " names the tools."
    };
    let (names, none) = (("Events", "events"), ("No events yet", &none));
    let body = listing(&view, &params, names, page.next_cursor.as_deref(), none, rows);
    Ok(Page::new(&view, "Events", "Sessions and tool calls of agents, newest first.").render(&body))
}

fn row(view: &View, params: &ListParams<EventFilter>, kept: &Event) -> Row {
    let event = &kept.event;
    // Each value links to the list with that filter.
    let only = |name: &str, value: &str| {
        html! {
            a href=(params.with(view, name, Some(value))) { (value) }
        }
    };
    let agent = match &event.agent_id {
        Some(agent) => format!("{agent} ({})", event.agent_kind),
        None => event.agent_kind.clone(),
    };
    Row::new()
        .key(kept.id)
        .cell("Type", type_badge(event.r#type))
        .cell("Agent", agent)
        .cell("Session", only("sessionId", &event.session_id))
        .cell(wide("Project"), only("projectId", &event.project_id))
        .maybe("Tool", event.tool_id.as_ref().map(|tool| only("toolId", tool)))
        .maybe(
            number("Duration").wide(),
            event.duration_ms.map(|ms| duration_us(ms.saturating_mul(1_000))),
        )
        .cell("Time", time(event.occurred_at.unwrap_or(kept.received_at), view.now))
        .maybe(long("Error"), event.error.as_deref())
}
