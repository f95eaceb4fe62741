//! One record: its text, metadata, source, and the operations that touched it.

mod touched;

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde_json::Value;

use self::touched::Touched;
use super::scope::ScopeQuery;
use super::{address, record_path};
use crate::components::{
    CompanyView, Details, Page, QueryParams, View, binding_link, empty, issue_link, operation_link,
    panel, run_link, scope_details, source_link, words,
};
use memhost_core::{Abilities, Act, Service};
use memhost_http::{Permission, Problem, ProblemCode, parse, permission};
use memhost_types::{
    AgentId, BindingKey, Corrected, GetRequest, GetResponse, JsonObject, OperationKind,
    RecordHandle, RecordId, RecordRow, Scope, Snippet, SourceRef,
};

/// The context of a page about one record, whose caller has the permission `P` in the company of
/// the address.
pub(crate) struct RecordView<P> {
    pub(super) binding: BindingKey,
    pub(super) id: RecordId,
    pub(super) scope: Scope,
    pub(super) handle: RecordHandle,
    abilities: Abilities,
    view: CompanyView<P>,
}

impl<P: Permission> FromRequestParts<Arc<Service>> for RecordView<P> {
    type Rejection = Problem;

    /// The binding in the address decides the provider.
    async fn from_request_parts(
        parts: &mut Parts,
        service: &Arc<Service>,
    ) -> Result<Self, Problem> {
        let view = CompanyView::<P>::from_request_parts(parts, service).await?;
        let names = Path::<(String, String, String)>::from_request_parts(parts, service).await;
        let Path((_, binding, id)) =
            names.map_err(|rejection| Problem::invalid(rejection.to_string()))?;
        let query = QueryParams::<ScopeQuery>::from_request_parts(parts, service).await?.query;
        let binding: BindingKey = parse("bindingKey", &binding)?;
        let id: RecordId = parse("providerRecordId", &id)?;
        let scope = query.of(&view.company);
        let kind = if let Act::Operate(kind) = P::ACT { kind } else { OperationKind::Get };
        let abilities = service
            .control()
            .abilities(&view.caller, kind, &mut scope.clone(), Some(&binding))
            .await?;
        let Some(provider_key) = abilities.provider_key.clone() else {
            let detail = format!(
                "the company {} has no binding `{binding}`; see its list of bindings",
                view.company
            );
            return Err(Problem::new(ProblemCode::NoBinding, detail));
        };
        let handle = RecordHandle { provider_key, provider_record_id: id.clone() };
        Ok(Self { binding, id, scope, handle, abilities, view })
    }
}

impl<P> Deref for RecordView<P> {
    type Target = View;

    fn deref(&self) -> &View {
        &self.view
    }
}

impl<P> RecordView<P> {
    /// The address of a page about the record: `records`, `correct` or `forget`.
    pub(super) fn path(&self, page: &str) -> String {
        address(&self.at(&[page, self.binding.as_str(), self.id.as_str()]), None, &self.scope)
    }

    /// The address of the list that the record is in.
    pub(super) fn list(&self) -> String {
        address(&self.at(&["records"]), Some(&self.binding), &self.scope)
    }

    /// A page below the list.
    pub(super) fn page<'a>(&'a self, title: &'a str, about: &'a str) -> Page<'a> {
        Page::new(self, title, about).crumb("Records", self.list())
    }

    /// The record, if this scope sees it.
    pub(super) async fn get(&self) -> Result<Option<Snippet>, Problem> {
        Ok(self.read().await?.record)
    }

    /// The same, with what the host knows of it.
    async fn read(&self) -> Result<GetResponse, Problem> {
        let request = GetRequest {
            binding_key: Some(self.binding.clone()),
            scope: self.scope.clone(),
            handle: self.handle.clone(),
        };
        Ok(self.service.operations().get(&self.caller, request).await?)
    }

    /// The page for a record that this scope does not see.
    pub(super) async fn gone(&self) -> Result<Response, Problem> {
        let touched = Touched::of(self).await?;
        let body = html! {
            (empty("This scope has no such record", &html! {
                "It was forgotten, waits for review, or belongs to another agent, subject or \
                 namespace. "
                a href=(self.list()) { "Show the records of this scope" }
            }))
            @if let Some(touched) = touched { (touched.panel(self)) }
        };
        Ok((StatusCode::NOT_FOUND, self.page("Record not found", "").render(&body)).into_response())
    }
}

pub(crate) async fn show(record: RecordView<permission::Get>) -> Result<Response, Problem> {
    let GetResponse { record: found, row, .. } = record.read().await?;
    let Some(found) = found else { return record.gone().await };
    let touched = Touched::of(&record).await?;
    let body = html! {
        div.two #record data-key=(record.id) {
            div.stack {
                (panel("text", "Text", &html! { p.text { (found.text) } }))
                @if let Some(summary) = &found.summary {
                    (panel("summary", "Summary", &html! { p.text { (summary) } }))
                }
                @if let Some(metadata) = found.metadata.as_ref().filter(
                    |metadata| !metadata.is_empty()
                ) {
                    (panel("metadata", "Metadata", &listed(metadata)))
                }
            }
            div.stack {
                (panel("about", "Details", &html! { (about(&record, &found, row.as_ref())) }))
                (panel(
                    "source", "Source",
                    &source_details(&record, found.source.as_ref(), row.as_ref()),
                ))
                @if let Some(touched) = touched { (touched.panel(&record)) }
            }
        }
    };
    let page = record.page("Record", "As its provider stores it now.").action(actions(&record));
    Ok(page.render(&body).into_response())
}

fn actions<P>(record: &RecordView<P>) -> Markup {
    let may = |kind| record.allows(Act::Operate(kind));
    html! {
        @if record.abilities.capabilities.correction && may(OperationKind::Correct) {
            a.button href=(record.path("correct")) { "Correct" }
        }
        @if may(OperationKind::Forget) { a.button href=(record.path("forget")) { "Forget" } }
    }
}

fn about<P>(record: &RecordView<P>, found: &Snippet, row: Option<&RecordRow>) -> Details {
    let moment = |at| record.moment(at);
    let key = record.binding.as_str();
    let binding = match record.allows(Act::View) {
        true => binding_link(record, key),
        false => html! { (key) },
    };
    let details = Details::default()
        .row("Binding", binding)
        .row("Provider", record.handle.provider_key.as_str())
        .row("Record ID", html! { code { (record.id) } })
        .maybe("Created", found.created_at.map(moment))
        .maybe("Updated", found.updated_at.map(moment))
        .maybe(
            "Corrected",
            found.corrected.as_ref().map(|corrected| corrected_from(record, corrected)),
        )
        .maybe("Written by", row.map(|row| row.written_by.to_string()))
        .maybe(
            "Last write",
            row.filter(|_| record.allows(Act::View))
                .map(|row| operation_link(record, row.operation_id)),
        )
        .maybe(
            "Written for",
            row.and_then(|row| row.scope.agent_id.as_ref()).map(ToString::to_string),
        )
        .maybe("Who finds it", row.map(|row| words(row.visibility.as_str())));
    scope_details(details, &record.scope)
}

fn corrected_from<P>(record: &RecordView<P>, corrected: &Corrected) -> Markup {
    let from = &corrected.from.provider_record_id;
    let href = record_path(record, &record.binding, from, &record.scope);
    html! { "by " (corrected.by) " from " a href=(href) { code { (from) } } }
}

fn source_details(view: &View, source: Option<&SourceRef>, row: Option<&RecordRow>) -> Markup {
    let Some(source) = source else { return html! { p.soft { "No source." } } };
    let agent = row.and_then(|row| row.scope.agent_id.as_ref()).map(AgentId::as_str);
    let details = Details::default()
        .row("Source", source_link(view, source))
        .row("Kind", words(source.kind.as_str()))
        .maybe("Issue", source.issue_id.as_deref().map(|id| issue_link(view, id)))
        .maybe("Comment", source.comment_id.as_deref())
        .maybe("Document", source.document_key.as_deref())
        .maybe("Run", source.run_id.as_deref().map(|id| run_link(view, id, agent)))
        .maybe("Activity", source.activity_id.as_deref())
        .maybe("External reference", source.external_ref.as_deref())
        .maybe("Asserted by", source.asserted_by.as_deref());
    html! { (details) }
}

/// Metadata as it is, one line for each name.
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
