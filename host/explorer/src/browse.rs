//! A provider's own tree of folders and records, one node at a time.

use maud::{Markup, html};

use super::components::{
    CompanyView, FilterForm, PAGE_SIZE, Page, QueryParams, Row, View, empty, long, pager, query,
    table, wide,
};
use super::records::scope::{address, fields, no_binding, pairs, record_path, scope_query};
use memhost_http::{Problem, permission};
use memhost_types::{BindingKey, BrowseNode, BrowseRequest, OperationKind, Scope};

scope_query! {
    /// The binding, the scope and the node of a tree.
    NodeQuery { binding_key: Option<BindingKey>, path: Option<String>, cursor: Option<String> }
}

pub(super) async fn page(
    view: CompanyView<permission::Browse>,
    params: QueryParams<NodeQuery>,
) -> Result<Markup, Problem> {
    let query = &params.query;
    let scope = query.scope(&view.company);
    let named = query.binding_key.as_ref();
    let path = query.path.as_deref().unwrap_or_default();
    let abilities = view
        .service
        .control()
        .abilities(&view.caller, OperationKind::Browse, &mut scope.clone(), named)
        .await?;
    let provider = abilities.provider_key.as_ref();
    let found = match (abilities.binding_key.as_ref().or(named), provider) {
        (Some(_), Some(provider)) if !abilities.capabilities.provider_native_browse => {
            let records = address(&view.at(&["records"]), named, &scope);
            empty(
                "This provider has no tree",
                &html! {
                    "The provider " code { (provider) } " does not support browsing. See its "
                    a href=(records) { "list of records" } "."
                },
            )
        }
        (Some(binding), _) => {
            let request = BrowseRequest {
                binding_key: named.cloned(),
                scope: scope.clone(),
                path: path.to_owned(),
                cursor: query.cursor.clone(),
                limit: PAGE_SIZE,
            };
            let page = view.service.operations().browse(&view.caller, request).await?;
            html! {
                @if page.nodes.is_empty() {
                    (empty("No records", &html! { "This scope has no records in this tree." }))
                } @else {
                    (children(&view, binding, named, &scope, &page.nodes))
                    (pager(&view, &params, page.next_cursor.as_deref(), "nodes"))
                }
            }
        }
        (None, Some(_)) => empty("No records yet", &html! { "The first record creates the tree." }),
        (None, None) => no_binding(&view),
    };
    let (above, here) = levels(path);
    let mut page = Page::new(&view, here, "The provider's own tree of records.");
    if !path.is_empty() {
        page = page.crumb("Browse", node(&view, named, &scope, ""));
    }
    for (name, path) in above {
        page = page.crumb(name, node(&view, named, &scope, path));
    }
    let body = html! {
        (fields(&view, FilterForm::new(&view, &params).submit("Show")))
        div #rows { (found) }
    };
    Ok(page.render(&body))
}

/// The address of a node.
fn node(view: &View, named: Option<&BindingKey>, scope: &Scope, path: &str) -> String {
    let path = ("path", Some(path).filter(|path| !path.is_empty()));
    format!("{}{}", view.at(&["browse"]), query(pairs(named, scope).chain([path])))
}

/// The names and paths of what is above a node, and its own name. A path is the provider's own;
/// where it has slashes, they are taken for levels, and a provider that means something else by
/// them says that there is no such node.
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
        let record = child
            .record
            .as_ref()
            .map(|handle| record_path(view, binding, &handle.provider_record_id, scope));
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
        let id = id.map(|id| match (&record, child.has_children) {
            (Some(href), true) => html! { a href=(href) { (id) } },
            _ => id,
        });
        row.key(&child.path)
            .cell(long("Name"), html! { (child.label) @if child.has_children { "/" } })
            .cell("Kind", kind)
            .maybe(wide("Record"), id)
    });
    table("Nodes", rows)
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
