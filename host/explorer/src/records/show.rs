//! One record: its text, metadata, source, and the operations that wrote, returned or cited it.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde_json::Value;

use super::scope::ScopeQuery;
use super::{address, place};
use crate::components::{
    Details, Page, QueryParams, View, binding_link, empty, exact, issue_link, panel, run_link, scope_details, short_id,
    source_link, time, words,
};
use memhost_core::{Abilities, Act, Caller, Service};
use memhost_http::{Authorized, Problem, ProblemCode, parse, permission};
use memhost_types::{
    BindingKey, CompanyId, GetRequest, JsonObject, Operation, OperationFilter, OperationKind, RecordHandle, RecordId,
    Scope, Snippet, SourceRef,
};

/// How many of the latest operations of a binding are looked at for a record.
const LOOKED_AT: u32 = 300;
/// How many of them are shown.
const SHOWN: usize = 12;

/// The record that an address names.
pub(super) struct Named {
    pub(super) binding: BindingKey,
    pub(super) id: RecordId,
    pub(super) scope: Scope,
    pub(super) abilities: Abilities,
    pub(super) handle: RecordHandle,
}

impl Named {
    /// Reads an address. The binding decides the provider.
    pub(super) async fn of(
        service: &Service,
        caller: &Caller,
        kind: OperationKind,
        (company, binding, id): (&CompanyId, &str, &str),
        within: &ScopeQuery,
    ) -> Result<Self, Problem> {
        let binding: BindingKey = parse("bindingKey", binding)?;
        let id: RecordId = parse("providerRecordId", id)?;
        let scope = within.of(company);
        let abilities = service.abilities(caller, kind, &mut scope.clone(), Some(&binding)).await?;
        let Some(provider_key) = abilities.provider_key.clone() else {
            let detail = format!("the company {company} has no binding `{binding}`; its bindings are in its list");
            return Err(Problem::new(ProblemCode::NoBinding, detail));
        };
        let handle = RecordHandle { provider_key, provider_record_id: id.clone() };
        Ok(Self { binding, id, scope, abilities, handle })
    }

    /// The address of its page, or of what is done to it: `forget`, `correct`.
    pub(super) fn at(&self, view: &View, what: &str) -> String {
        match what {
            "" => place(view, &self.binding, &self.id, &self.scope),
            what => address(&view.at(&[what, self.binding.as_str(), self.id.as_str()]), None, &self.scope),
        }
    }

    /// The list that it is in.
    pub(super) fn list(&self, view: &View) -> String {
        address(&view.at(&["records"]), Some(&self.binding), &self.scope)
    }

    /// The record, if this scope sees it.
    pub(super) async fn get(&self, service: &Service, caller: &Caller) -> Result<Option<Snippet>, Problem> {
        let request = GetRequest {
            binding_key: Some(self.binding.clone()),
            scope: self.scope.clone(),
            handle: self.handle.clone(),
        };
        Ok(service.get(caller, request).await?.record)
    }

    /// The record's page where there is none.
    pub(super) async fn gone(&self, service: &Service, view: &View) -> Response {
        let operations = operations(service, view, self).await;
        let body = html! {
            (empty("This scope has no such record", &html! {
                "It was forgotten, waits for review, or belongs to another agent, subject or namespace. "
                a href=(self.list(view)) { "Show the records of this scope" }
            }))
            (related_operations(view, self, &operations))
        };
        let page = Page::new(view, "Record not found", "").crumb("Records", self.list(view)).render(&body);
        (StatusCode::NOT_FOUND, page).into_response()
    }
}

pub(crate) async fn show(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, binding, record)): Path<(String, String, String)>,
    allowed: Authorized<permission::Get>,
    params: QueryParams<ScopeQuery>,
) -> Result<Response, Problem> {
    let address = (&allowed.company, binding.as_str(), record.as_str());
    let named = Named::of(&service, &allowed.caller, OperationKind::Get, address, &params.query).await?;
    let Some(found) = named.get(&service, &allowed.caller).await? else { return Ok(named.gone(&service, &view).await) };
    let operations = operations(&service, &view, &named).await;
    let body = html! {
        div.two #record data-key=(named.id) {
            div.stack {
                (panel("text", "Text", &html! { p.text { (found.text) } }))
                @if let Some(summary) = &found.summary {
                    (panel("summary", "Summary", &html! { p.text { (summary) } }))
                }
                @if let Some(metadata) = found.metadata.as_ref().filter(|metadata| !metadata.is_empty()) {
                    (panel("metadata", "Metadata", &listed(metadata)))
                }
            }
            div.stack {
                (panel("about", "Details", &html! { (about(&view, &named, &found)) }))
                (panel("source", "Source", &came(&view, found.source.as_ref())))
                (related_operations(&view, &named, &operations))
            }
        }
    };
    let page = Page::new(&view, "Record", "As its provider stores it now.")
        .crumb("Records", named.list(&view))
        .action(actions(&view, &named))
        .render(&body);
    Ok(page.into_response())
}

fn actions(view: &View, named: &Named) -> Markup {
    let may = |kind| view.allows(Act::Operate(kind));
    html! {
        @if named.abilities.capabilities.correction && may(OperationKind::Correct) {
            a.button href=(named.at(view, "correct")) { "Correct" }
        }
        @if may(OperationKind::Forget) { a.button href=(named.at(view, "forget")) { "Forget" } }
    }
}

fn about(view: &View, named: &Named, found: &Snippet) -> Details {
    let moment = |moment| html! { (time(moment, view.now)) " " span.soft { (exact(moment)) } };
    let key = named.binding.as_str();
    let binding = match view.allows(Act::View) {
        true => binding_link(view, key),
        false => html! { (key) },
    };
    let details = Details::default()
        .row("Binding", binding)
        .row("Provider", named.handle.provider_key.as_str())
        .row("Record ID", html! { code { (named.id) } })
        .maybe("Created", found.created_at.map(moment))
        .maybe("Updated", found.updated_at.map(moment));
    scope_details(details, &named.scope)
}

fn came(view: &View, source: Option<&SourceRef>) -> Markup {
    let Some(source) = source else { return html! { p.soft { "No source." } } };
    let details = Details::default()
        .row("Source", source_link(view, source))
        .row("Kind", words(source.kind.as_str()))
        .maybe("Issue", source.issue_id.as_deref().map(|id| issue_link(view, id)))
        .maybe("Comment", source.comment_id.as_deref())
        .maybe("Document", source.document_key.as_deref())
        .maybe("Run", source.run_id.as_deref().map(|id| run_link(view, id)))
        .maybe("Activity", source.activity_id.as_deref())
        .maybe("External reference", source.external_ref.as_deref());
    html! { (details) }
}

/// Metadata as it is, one line a name.
fn listed(metadata: &JsonObject) -> Markup {
    html! {
        dl.details {
            @for (name, value) in metadata {
                div {
                    dt { (name) }
                    dd { @match value { Value::String(text) => (text), value => code { (value) } } }
                }
            }
        }
    }
}

/// The latest operations that wrote a record, gave it out in answer to a question, or say that they build on it.
async fn operations(service: &Service, view: &View, named: &Named) -> Vec<Operation> {
    let Some(company) = view.company.as_ref().filter(|_| view.allows(Act::View)) else { return Vec::new() };
    let filter = OperationFilter { binding_key: Some(named.binding.clone()), ..OperationFilter::default() };
    let latest = service.operations(company, &filter, None, LOOKED_AT).await.map(|page| page.items).unwrap_or_default();
    // Lists and reads of a record are not worth showing here.
    let tells = |operation: &Operation| operation.kind.is_write() || operation.kind == OperationKind::Query;
    let has = |handles: &[RecordHandle]| handles.contains(&named.handle);
    let mut latest: Vec<_> = latest.into_iter().filter(tells).filter(|o| has(&o.records) || has(&o.cited)).collect();
    latest.truncate(SHOWN);
    latest
}

fn related_operations(view: &View, named: &Named, operations: &[Operation]) -> Markup {
    if !view.allows(Act::View) {
        return html! {};
    }
    panel(
        "operations",
        "Operations",
        &html! {
            @if operations.is_empty() {
                p.soft { "None of the binding's latest " (LOOKED_AT) " operations wrote or returned it." }
            } @else {
                ul.list {
                    @for operation in operations {
                        li.between data-key=(operation.id) {
                            span {
                                a href=(view.at(&["operations", &operation.id.to_string()])) {
                                    (words(operation.kind.as_str()))
                                }
                                @if operation.cited.contains(&named.handle) { " that cites it" }
                                " " span.soft { (operation.principal) " " (short_id(operation.id)) }
                            }
                            span.soft {
                                @if operation.scope != named.scope {
                                    a href=(place(view, &named.binding, &named.id, &operation.scope)) { "view in its scope" } " · "
                                }
                                (time(operation.started_at, view.now))
                            }
                        }
                    }
                }
            }
        },
    )
}
