//! The operation log, and one operation with its whole record.

pub(super) mod show;

use maud::{Markup, html};

use super::components::{
    CompanyView, Control, ListParams, Page, Row, View, choices, duration_us, filter_fields,
    first_note, hook_kinds, listing, money, number, outcome, time, words,
};
use memhost_http::{Problem, permission};
use memhost_types::{
    BindingKey, Microcents, Operation, OperationFilter, OperationKind, Outcome, SourceKind,
};

/// Rows of one page.
const ROWS: u32 = 50;

filter_fields! {
    OperationFilter {
        "kind", "Kind", Control::Select(|| choices(OperationKind::ALL)), read_text(kind);
        "outcome", "Outcome", Control::Select(|| choices(Outcome::ALL)), read_text(outcome);
        "bindingKey", "Binding", Control::Binding, read_text(binding_key);
        "agentId", "Agent", Control::Text, read_text(agent_id);
        "since", "From", Control::Day, read_since(since);
        "until", "Until", Control::Day, read_until(until);
        advanced:
        "issueId", "Issue", Control::Text, read_text(issue_id);
        "projectId", "Project", Control::Text, read_text(project_id);
        "runId", "Run", Control::Text, read_text(run_id);
        "sessionKey", "Session", Control::Text, read_text(session_key);
        "sourceKind", "Source", Control::Select(|| choices(SourceKind::ALL)),
        read_text(source_kind);
        "hookKind", "Hook", Control::Select(hook_kinds), read_text(hook_kind);
        "bindingId", "Binding ID", Control::Text, read_text(binding_id);
        "providerRecordId", "Record", Control::Text, read_text(provider_record_id);
        "providerKey", "Provider", Control::Text, read_text(provider_key);
    }
}

pub(super) async fn list(
    view: CompanyView<permission::View>,
    params: ListParams<OperationFilter>,
) -> Result<Markup, Problem> {
    let query = &params.query;
    let page = view
        .service
        .control()
        .operations(&view.company, &query.filter, query.cursor.as_deref(), ROWS)
        .await?;
    let none = html! {
        "Every request to memory is recorded here. "
        (first_note(view.company.as_str()))
    };
    let (names, none) = (("Operations", "operations"), ("No operations yet", &none));
    let rows = rows(&view, &page.items);
    let body = listing(&view, &params, names, page.next_cursor.as_deref(), none, rows);
    Ok(Page::new(
        &view,
        "Operations",
        "Every request to memory: for whom it was and how it ended, newest first.",
    )
    .live("operations")
    .render(&body))
}

/// A row for each operation.
pub(super) fn rows(view: &View, operations: &[Operation]) -> impl Iterator<Item = Row> {
    operations.iter().map(|operation| {
        Row::to(view.at(&["operations", &operation.id.to_string()]))
            .key(operation.id)
            .cell("Time", time(operation.started_at, view.now))
            .cell("Kind", words(operation.kind.as_str()))
            .cell("Outcome", outcome(operation.outcome))
            .maybe("Binding", operation.binding_key.as_ref().map(BindingKey::as_str))
            .maybe("Agent", operation.scope.agent_id.as_ref().map(|id| id.as_str()))
            .maybe(number("Count").wide(), (operation.count > 1).then_some(operation.count))
            .cell(number("Records"), operation.record_count)
            .maybe(number("Latency"), operation.latency_us.map(duration_us))
            .maybe(number("Cost").wide(), cost(operation).map(money))
    })
}

/// The cost that the provider reported, whoever bills it. None: it reported no cost.
fn cost(operation: &Operation) -> Option<Microcents> {
    let known = operation.usage.iter().filter_map(|usage| usage.cost);
    known.reduce(|sum, cost| Microcents(sum.0.saturating_add(cost.0)))
}
