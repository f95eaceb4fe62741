//! A provider's own tree: folders and records as it keeps them, one node at a time.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};

use super::kit::{Asked, Col, Filter, Page, Row, View, empty, pager, table};
use super::pieces::ROWS;
use super::records::{address, asks, fields, no_binding, place};
use memhost_core::Service;
use memhost_http::{Authorized, Problem, permission};
use memhost_types::{BindingKey, BrowseNode, BrowseRequest, OperationKind, Scope};

asks! {
    /// A node of whose tree.
    Node { binding_key: Option<BindingKey>, path: Option<String>, cursor: Option<String> }
}

pub(super) async fn page(
    State(service): State<Arc<Service>>,
    view: View,
    allowed: Authorized<permission::Browse>,
    asked: Asked<Node>,
) -> Result<Markup, Problem> {
    let query = &asked.query;
    let scope = query.scope(&allowed.company);
    let named = query.binding_key.as_ref();
    let path = query.path.as_deref().unwrap_or_default();
    let abilities = service.abilities(&allowed.caller, OperationKind::Browse, &mut scope.clone(), named).await?;
    let provider = abilities.provider_key.as_ref();
    let found = match (abilities.binding_key.as_ref().or(named), provider) {
        (Some(_), Some(provider)) if !abilities.capabilities.provider_native_browse => {
            let records = address(&view.at(&["records"]), named, &scope);
            empty(
                "No tree to look at",
                &html! {
                    "The provider " code { (provider) } " keeps no tree, or shows none. Its records are in " a href=(records) { "their list" } "."
                },
            )
        }
        (Some(binding), _) => {
            let request = BrowseRequest {
                binding_key: named.cloned(),
                scope: scope.clone(),
                path: path.to_owned(),
                cursor: query.cursor.clone(),
                limit: ROWS,
            };
            let page = service.browse(&allowed.caller, request).await?;
            html! {
                @if page.nodes.is_empty() { (empty("Nothing here", &html! { "This scope sees no record of this tree." })) } @else {
                    (children(&view, binding, named, &scope, &page.nodes))
                    (pager(&view, &asked, page.next_cursor.as_deref(), "nodes"))
                }
            }
        }
        (None, Some(_)) => empty("Nothing is remembered yet", &html! { "The first record makes the tree." }),
        (None, None) => no_binding(&view),
    };
    let (above, here) = levels(path);
    let mut page = Page::new(&view, here, "The tree as its provider keeps it.");
    if !path.is_empty() {
        page = page.crumb("Browse", node(&view, named, &scope, ""));
    }
    for (name, path) in above {
        page = page.crumb(name, node(&view, named, &scope, path));
    }
    let body = html! {
        (fields(&view, Filter::new(&view, &asked).does("Show")))
        div #rows { (found) }
    };
    Ok(page.render(&body))
}

/// The address of a node.
fn node(view: &View, named: Option<&BindingKey>, scope: &Scope, path: &str) -> String {
    let href = address(&view.at(&["browse"]), named, scope);
    let joint = if href.contains('?') { '&' } else { '?' };
    if path.is_empty() { href } else { format!("{href}{joint}path={}", super::kit::escape(path)) }
}

/// The names and paths of what is above a node, and its own name. A path is the provider's own; where it has slashes, they
/// are taken for levels, and a provider that means something else by them says that there is no such node.
fn levels(path: &str) -> (Vec<(&str, &str)>, &str) {
    let mut above = Vec::new();
    let mut start = 0;
    for (at, _) in path.match_indices('/').filter(|(at, _)| *at > 0 && at + 1 < path.len()) {
        above.push((&path[start..at], &path[..at]));
        start = at + 1;
    }
    (above, if path.is_empty() { "Browse" } else { &path[start..] })
}

fn children(
    view: &View,
    binding: &BindingKey,
    named: Option<&BindingKey>,
    scope: &Scope,
    nodes: &[BrowseNode],
) -> Markup {
    let rows = nodes.iter().map(|child| {
        let record = child.record.as_ref().map(|handle| place(view, binding, &handle.provider_record_id, scope));
        let row = match (&record, child.has_children) {
            (Some(href), false) => Row::to(href),
            (_, true) => Row::to(node(view, named, scope, &child.path)),
            (None, false) => Row::new(),
        };
        let kind = match (child.has_children, child.record.is_some()) {
            (true, false) => "folder",
            (true, true) => "folder and record",
            (false, true) => "record",
            (false, false) => "empty",
        };
        let id = child.record.as_ref().map(|handle| html! { code { (handle.provider_record_id) } });
        row.key(&child.path).cell(html! { (child.label) @if child.has_children { "/" } }).cell(kind).maybe(id.map(
            |id| match (&record, child.has_children) {
                (Some(href), true) => html! { a href=(href) { (id) } },
                _ => id,
            },
        ))
    });
    table("Nodes", &[Col::text("Name").long(), Col::text("Kind"), Col::text("Record").wide()], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_of_a_path_has_its_own() {
        assert_eq!(levels(""), (Vec::new(), "Browse"));
        assert_eq!(levels("all"), (Vec::new(), "all"));
        assert_eq!(levels("a/b c/d"), (vec![("a", "a"), ("b c", "a/b c")], "d"));
        assert_eq!(levels("/x/"), (Vec::new(), "/x/"));
    }
}
