//! The list of records that a scope sees.

use maud::{Markup, html};

use super::any;
use super::scope::{fields, no_binding, object, record_path, scope_query};
use crate::components::{
    CompanyView, FilterForm, PAGE_SIZE, Page, QueryParams, Row, View, choices, clipped, empty,
    long, pager, read_since, read_until, source_link, table, time, wide,
};
use memhost_core::Act;
use memhost_executor::off_executor;
use memhost_http::{Problem, permission};
use memhost_types::{
    AgentId, BindingKey, ListRequest, OperationKind, RecordFilter, Scope, Snippet, SourceKind,
};

scope_query! {
    /// The binding, the scope and the page of a list.
    RecordQuery {
        binding_key: Option<BindingKey>,
        metadata_filter: Option<String>,
        source_kind: Option<SourceKind>,
        comment_id: Option<String>,
        document_key: Option<String>,
        author_id: Option<AgentId>,
        since: Option<String>,
        until: Option<String>,
        text: Option<String>,
        cursor: Option<String>,
    }
}

impl RecordQuery {
    /// Which records are shown. An issue, a run and a project are more than context here: who looks
    /// for an issue that is nowhere finds nothing.
    fn filter(&self) -> Result<Option<RecordFilter>, Problem> {
        let (mut since, mut until) = (None, None);
        let wrong =
            |field: &str, error: String| Problem::invalid(format!("{field} {error}")).at(field);
        if let Some(day) = &self.since {
            read_since(&mut since, day).map_err(|error| wrong("since", error))?;
        }
        if let Some(day) = &self.until {
            read_until(&mut until, day).map_err(|error| wrong("until", error))?;
        }
        let filter = RecordFilter {
            source_kind: self.source_kind,
            issue_id: self.issue_id.clone(),
            comment_id: self.comment_id.clone(),
            document_key: self.document_key.clone(),
            run_id: self.run_id.clone(),
            project_id: self.project_id.clone(),
            agent_id: self.author_id.clone(),
            subject_id: None,
            since,
            until,
            text: self.text.clone(),
        };
        Ok((!filter.is_empty()).then_some(filter))
    }
}

pub(crate) async fn list(
    view: CompanyView<permission::List>,
    params: QueryParams<RecordQuery>,
) -> Result<Markup, Problem> {
    let query = &params.query;
    let scope = query.scope(&view.company);
    let named = query.binding_key.as_ref();
    let abilities = view
        .service
        .control()
        .abilities(&view.caller, OperationKind::List, &mut scope.clone(), named)
        .await?;
    let request = ListRequest {
        binding_key: named.cloned(),
        scope: scope.clone(),
        cursor: query.cursor.clone(),
        limit: PAGE_SIZE,
        metadata_filter: object("metadataFilter", query.metadata_filter.as_deref())?,
        filter: query.filter()?,
    };
    // Who may not see the bindings is answered by their own.
    let is_any = named.is_none()
        && view.allows(Act::View)
        && view.service.control().binding_keys(&view.company).len() > 1;
    // A list does not create the first binding of a company; the first record does.
    let found = match abilities.binding_key.as_ref().or(named) {
        _ if is_any => {
            let listed = any::list(&view, &request).await?;
            html! {
                @for (key, why) in &listed.failed {
                    p.help { "The records of " (key) " are missing: " (why) }
                }
                @if listed.items.is_empty() && listed.next.is_none() {
                    (nothing(&view, &params))
                } @else {
                    (off_executor(usize::MAX, || rows(&view, true, &scope, &listed.items)))
                    @for key in &listed.truncated {
                        p.help {
                            "There may be more records in " (key) ". Its provider cannot list them."
                        }
                    }
                    (pager(&view, &params, listed.next.as_deref(), "records"))
                }
            }
        }
        // The built-in provider answers as soon as there is a record.
        None if abilities.provider_key.is_some() => nothing(&view, &params),
        None => no_binding(&view),
        Some(binding) => {
            let page = view.service.operations().list(&view.caller, request).await?;
            html! {
                @if page.items.is_empty() && page.next_cursor.is_none() {
                    (nothing(&view, &params))
                } @else {
                    // A text may begin with very many spaces.
                    @let items: Vec<_> =
                        page.items.into_iter().map(|item| (binding.clone(), item)).collect();
                    (off_executor(usize::MAX, || rows(&view, false, &scope, &items)))
                    @if page.truncated {
                        p.help { "There may be more records. The provider cannot list them." }
                    }
                    (pager(&view, &params, page.next_cursor.as_deref(), "records"))
                }
            }
        }
    };
    let body = html! {
        (fields(
                &view,
                FilterForm::new(&view, &params)
                    .text("text", "Text").day("since", "From").day("until", "Until"),
            )
            .select("sourceKind", "Source", choices(SourceKind::ALL))
            .text("authorId", "Agent")
            .text("commentId", "Comment")
            .text("documentKey", "Document")
            .text("metadataFilter", "Metadata (JSON)"))
        div #rows { (found) }
    };
    let about = "The records that a scope can see, in the provider's order.";
    Ok(Page::new(&view, "Records", about).action(create_button(&view)).render(&body))
}

fn create_button(view: &View) -> Markup {
    html! {
        @if view.allows(Act::Operate(OperationKind::RecordUpsert)) {
            a.button.primary href=(view.at(&["new-record"])) { "Create record" }
        }
    }
}

fn nothing(view: &View, params: &QueryParams<RecordQuery>) -> Markup {
    if params.is_filtered() {
        return empty("No matching records", &html! { a href=(view.path) { "Clear filters" } });
    }
    empty(
        "No records yet",
        &html! {
            "Captured runs, comments and documents become records. See " code {
                "memhost capture --help"
            } "."
        },
    )
}

/// A table of records. `names_binding`: they are of several.
fn rows(
    view: &View,
    names_binding: bool,
    scope: &Scope,
    items: &[(BindingKey, Snippet)],
) -> Markup {
    let rows = items.iter().map(|(binding, item)| {
        let id = &item.handle.provider_record_id;
        let row = Row::to(record_path(view, binding, id, scope))
            .key(id)
            .cell(long("Text"), clipped(&item.text, 160));
        let row = if names_binding { row.cell("Binding", html! { (binding) }) } else { row };
        row.maybe(wide("Summary"), item.summary.as_deref().map(|summary| clipped(summary, 80)))
            .maybe(wide("Source"), item.source.as_ref().map(|source| source_link(view, source)))
            .maybe(wide("By"), item.written_by.as_ref().map(|by| html! { (by) }))
            .maybe("Created", item.created_at.map(|at| time(at, view.now)))
            .maybe(wide("Updated"), item.updated_at.map(|at| time(at, view.now)))
    });
    table("Records", rows)
}
