//! The operation log: what memory work happened, for whom and how it ended; and each operation with all that is known of it.

mod show;

use std::sync::Arc;

use axum::extract::State;
use jiff::civil::Date;
use maud::{Markup, html};
use serde::Deserialize;

pub(super) use show::show;

use super::kit::{Asked, Col, Filter, Page, Row, View, duration_us, empty, money, outcome, pager, table, time, words};
use super::pieces;
use memhost_core::Service;
use memhost_http::{Authorized, Problem, permission};
use memhost_types::{BindingKey, HookKind, Microcents, Operation, OperationFilter, OperationKind, Outcome, SourceKind};

/// Rows of one page.
const ROWS: u32 = 50;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OperationQuery {
    kind: Option<OperationKind>,
    outcome: Option<Outcome>,
    binding_key: Option<BindingKey>,
    agent_id: Option<String>,
    issue_id: Option<String>,
    project_id: Option<String>,
    run_id: Option<String>,
    session_key: Option<String>,
    source_kind: Option<SourceKind>,
    hook_kind: Option<HookKind>,
    since: Option<Date>,
    until: Option<Date>,
    cursor: Option<String>,
}

impl OperationQuery {
    fn filter(&self) -> OperationFilter {
        let (since, until) = pieces::moments(self.since, self.until);
        OperationFilter {
            agent_id: self.agent_id.clone(),
            issue_id: self.issue_id.clone(),
            project_id: self.project_id.clone(),
            run_id: self.run_id.clone(),
            session_key: self.session_key.clone(),
            hook_kind: self.hook_kind.clone(),
            source_kind: self.source_kind,
            kind: self.kind,
            outcome: self.outcome,
            binding_key: self.binding_key.clone(),
            since,
            until,
        }
    }
}

pub(super) async fn list(
    State(service): State<Arc<Service>>,
    view: View,
    allowed: Authorized<permission::View>,
    asked: Asked<OperationQuery>,
) -> Result<Markup, Problem> {
    let query = &asked.query;
    let page = service.operations(&allowed.company, &query.filter(), query.cursor.as_deref(), ROWS).await?;
    let hooks =
        ["pre_run_hydrate", "post_run_capture", "issue_comment_capture", "issue_document_capture", "manual_capture"];
    let body = html! {
        (Filter::new(&view, &asked)
            .choice("kind", "Kind", pieces::named(OperationKind::ALL.iter().map(|kind| kind.as_str())))
            .choice("outcome", "Outcome", pieces::named(Outcome::ALL.iter().map(|outcome| outcome.as_str())))
            .choice("bindingKey", "Binding", pieces::binding_keys(&view))
            .text("agentId", "Agent")
            .day("since", "From")
            .day("until", "Until")
            .more()
            .text("issueId", "Issue")
            .text("projectId", "Project")
            .text("runId", "Run")
            .text("sessionKey", "Session")
            .choice("sourceKind", "Source", pieces::named(SourceKind::ALL.map(SourceKind::as_str)))
            .choice("hookKind", "Hook", pieces::named(hooks)))
        div #rows data-live {
            @if page.items.is_empty() && asked.is_filtered() {
                (empty("No operation is like that", &html! { a href=(view.path) { "Show all operations" } }))
            } @else if page.items.is_empty() {
                (empty("No operation yet", &html! {
                    "Everything that is asked of memory is recorded here. "
                    code { "memhost note --company " (allowed.company) " 'Deploys are frozen on Fridays'" }
                }))
            } @else {
                (rows(&view, "Operations", &page.items))
                (pager(&view, &asked, page.next_cursor.as_deref(), "operations"))
            }
        }
    };
    Ok(Page::new(&view, "Operations", "What was asked of memory, for whom and how it ended, newest first.")
        .live("operations")
        .render(&body))
}

/// A table of operations.
pub(super) fn rows(view: &View, caption: &str, operations: &[Operation]) -> Markup {
    let columns = [
        Col::text("Time"),
        Col::text("Kind"),
        Col::text("Outcome"),
        Col::text("Binding"),
        Col::text("Agent"),
        Col::number("Records"),
        Col::number("Latency"),
        Col::number("Cost").wide(),
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

/// What an operation's provider says it cost, whoever bills it; none where it says nothing.
fn cost(operation: &Operation) -> Option<Microcents> {
    let known = operation.usage.iter().filter_map(|usage| usage.cost);
    known.reduce(|sum, cost| Microcents(sum.0.saturating_add(cost.0)))
}
