//! The operation log, and one operation with its whole record.

mod show;

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};

pub(super) use show::show;

use super::components::{
    Column, Control, FilterForm, ListParams, Page, Row, View, choices, duration_us, empty, filter_fields, hook_kinds,
    money, outcome, pager, table, time, words,
};
use memhost_core::Service;
use memhost_http::{Authorized, Problem, permission};
use memhost_types::{BindingKey, Microcents, Operation, OperationFilter, OperationKind, Outcome, SourceKind};

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
        "sourceKind", "Source", Control::Select(|| choices(SourceKind::ALL)), read_text(source_kind);
        "hookKind", "Hook", Control::Select(hook_kinds), read_text(hook_kind);
    }
}

pub(super) async fn list(
    State(service): State<Arc<Service>>,
    view: View,
    allowed: Authorized<permission::View>,
    params: ListParams<OperationFilter>,
) -> Result<Markup, Problem> {
    let query = &params.query;
    let page = service.operations(&allowed.company, &query.filter, query.cursor.as_deref(), ROWS).await?;
    let body = html! {
        (FilterForm::of(&view, &params))
        div #rows data-live {
            @if page.items.is_empty() && params.is_filtered() {
                (empty("No matching operations", &html! { a href=(view.path) { "Show all operations" } }))
            } @else if page.items.is_empty() {
                (empty("No operations yet", &html! {
                    "Every request to memory is recorded here. "
                    code { "memhost note --company " (allowed.company) " 'Deploys are frozen on Fridays'" }
                }))
            } @else {
                (rows(&view, "Operations", &page.items))
                (pager(&view, &params, page.next_cursor.as_deref(), "operations"))
            }
        }
    };
    Ok(Page::new(&view, "Operations", "Every request to memory: for whom it was and how it ended, newest first.")
        .live("operations")
        .render(&body))
}

/// A table of operations.
pub(super) fn rows(view: &View, caption: &str, operations: &[Operation]) -> Markup {
    let columns = [
        Column::text("Time"),
        Column::text("Kind"),
        Column::text("Outcome"),
        Column::text("Binding"),
        Column::text("Agent"),
        Column::number("Records"),
        Column::number("Latency"),
        Column::number("Cost").wide(),
    ];
    let rows = operations.iter().map(|operation| {
        Row::to(view.at(&["operations", &operation.id.to_string()]))
            .key(operation.id)
            .cell(time(operation.started_at, view.now))
            .cell(words(operation.kind.as_str()))
            .cell(outcome(operation.outcome))
            .maybe(operation.binding_key.as_ref().map(BindingKey::as_str))
            .maybe(operation.scope.agent_id.as_ref().map(|id| id.as_str()))
            .cell(operation.record_count)
            .maybe(operation.latency_us.map(duration_us))
            .maybe(cost(operation).map(money))
    });
    table(caption, &columns, rows)
}

/// The cost that the provider reported, whoever bills it. None: it reported no cost.
fn cost(operation: &Operation) -> Option<Microcents> {
    let known = operation.usage.iter().filter_map(|usage| usage.cost);
    known.reduce(|sum, cost| Microcents(sum.0.saturating_add(cost.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::check_fields;

    #[test]
    fn every_filter_reads_its_own_values() {
        check_fields::<OperationFilter>();
    }
}
