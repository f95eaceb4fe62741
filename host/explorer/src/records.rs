//! Records: everything that a scope sees, one of them whole, and writing, correcting and forgetting them. Each of these is
//! a memory operation of whoever is signed in: authorized and recorded like every other one.

mod change;
mod show;
mod within;
mod write;

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};

pub(super) use change::{ask_correct, ask_forget, correct, forget};
pub(super) use show::show;
pub(super) use within::{address, asks, fields, object};
pub(super) use write::{create, new};

use super::kit::{Asked, Col, Filter, Page, Row, View, empty, pager, source_link, table, time};
use super::pieces::ROWS;
use memhost_core::{Act, Service};
use memhost_http::{Authorized, Problem, permission};
use memhost_types::{BindingKey, ListRequest, OperationKind, RecordId, Scope, Snippet};

asks! {
    /// What a list is of.
    RecordQuery { binding_key: Option<BindingKey>, metadata_filter: Option<String>, cursor: Option<String> }
}

/// The address of a record's page, as it is seen in a scope.
pub(super) fn place(view: &View, binding: &BindingKey, id: &RecordId, scope: &Scope) -> String {
    address(&view.at(&["records", binding.as_str(), id.as_str()]), None, scope)
}

/// The beginning of a text, in one line.
pub(super) fn clipped(text: &str, most: usize) -> String {
    let mut letters = text.split_whitespace().flat_map(|word| std::iter::once(' ').chain(word.chars())).skip(1);
    let start: String = letters.by_ref().take(most).collect();
    match letters.next() {
        Some(_) => format!("{start}…"),
        None if start.is_empty() => "(empty)".to_owned(),
        None => start,
    }
}

pub(super) async fn list(
    State(service): State<Arc<Service>>,
    view: View,
    allowed: Authorized<permission::List>,
    asked: Asked<RecordQuery>,
) -> Result<Markup, Problem> {
    let query = &asked.query;
    let scope = query.scope(&allowed.company);
    let named = query.binding_key.as_ref();
    let abilities = service.abilities(&allowed.caller, OperationKind::List, &mut scope.clone(), named).await?;
    // Looking gives no company its first binding: the first record does.
    let found = match abilities.binding_key.as_ref().or(named) {
        // The built-in provider will answer, once there is something to be kept.
        None if abilities.provider_key.is_some() => nothing(&view, &asked),
        None => no_binding(&view),
        Some(binding) => {
            let request = ListRequest {
                binding_key: named.cloned(),
                scope: scope.clone(),
                cursor: query.cursor.clone(),
                limit: ROWS,
                metadata_filter: object("metadataFilter", query.metadata_filter.as_deref())?,
            };
            let page = service.list(&allowed.caller, request).await?;
            html! {
                @if page.items.is_empty() && page.next_cursor.is_none() { (nothing(&view, &asked)) } @else {
                    (rows(&view, binding, &scope, &page.items))
                    @if page.truncated { p.help { "There may be more, but the system behind the provider offers no way to it." } }
                    (pager(&view, &asked, page.next_cursor.as_deref(), "records"))
                }
            }
        }
    };
    let body = html! {
        (fields(&view, Filter::new(&view, &asked)).text("metadataFilter", "Metadata, as JSON"))
        div #rows { (found) }
    };
    let about = "What a scope sees, in the order of the provider that keeps it.";
    Ok(Page::new(&view, "Records", about).action(write_one(&view)).render(&body))
}

fn write_one(view: &View) -> Markup {
    html! {
        @if view.allows(Act::Operate(OperationKind::RecordUpsert)) {
            a.button.primary href=(view.at(&["new-record"])) { "Write a record" }
        }
    }
}

fn nothing(view: &View, asked: &Asked<RecordQuery>) -> Markup {
    if asked.is_filtered() {
        return empty(
            "This scope sees no record like that",
            &html! { a href=(view.path) { "Show what everybody sees" } },
        );
    }
    empty(
        "Nothing is remembered yet",
        &html! { "Runs, comments and documents that are captured become records: " code { "memhost capture --help" } "." },
    )
}

/// What stands on a page of a company without a binding for the scope.
pub(super) fn no_binding(view: &View) -> Markup {
    empty(
        "No binding answers here",
        &html! {
            @if view.allows(Act::View) {
                "Make one, or make one the default, under " a href=(view.at(&["bindings"])) { "Bindings" } "."
            } @else { "Ask whoever gave you your token for one." }
        },
    )
}

fn rows(view: &View, binding: &BindingKey, scope: &Scope, items: &[Snippet]) -> Markup {
    let columns = [
        Col::text("Text").long(),
        Col::text("Summary").wide(),
        Col::text("Source").wide(),
        Col::text("Created"),
        Col::text("Updated").wide(),
    ];
    let rows = items.iter().map(|item| {
        let id = &item.handle.provider_record_id;
        Row::to(place(view, binding, id, scope))
            .key(id)
            .cell(clipped(&item.text, 160))
            .maybe(item.summary.as_deref().map(|summary| clipped(summary, 80)))
            .maybe(item.source.as_ref().map(|source| source_link(view, source)))
            .maybe(item.created_at.map(|at| time(at, view.now)))
            .maybe(item.updated_at.map(|at| time(at, view.now)))
    });
    table("Records", &columns, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_shown_by_its_beginning() {
        assert_eq!(clipped("one\n two", 20), "one two");
        assert_eq!(clipped("äöü äöü", 5), "äöü ä…");
        assert_eq!(clipped(&"x".repeat(1 << 20), 3), "xxx…");
        assert_eq!(clipped(" \n", 5), "(empty)");
    }
}
