//! One record: its text, metadata, source, and the operations that touched it.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde_json::Value;

use super::record::RecordView;
use super::scope::record_path;
use super::touched::Touched;
use crate::components::{
    Details, View, binding_link, empty, issue_link, operation_link, panel, run_link, scope_details,
    source_link, words,
};
use memhost_core::Act;
use memhost_http::{Problem, permission};
use memhost_types::{
    AgentId, Corrected, GetResponse, JsonObject, OperationKind, RecordRow, Snippet, SourceRef,
};

/// The page for a record that this scope does not see.
pub(super) async fn gone<P>(record: &RecordView<P>) -> Result<Response, Problem> {
    let touched = Touched::of(record).await?;
    let body = html! {
        (empty("This scope has no such record", &html! {
            "It was forgotten, waits for review, or belongs to another agent, subject or \
             namespace. "
            a href=(record.list()) { "Show the records of this scope" }
        }))
        @if let Some(touched) = touched { (touched.panel(record)) }
    };
    Ok((StatusCode::NOT_FOUND, record.page("Record not found", "").render(&body)).into_response())
}

pub(crate) async fn show(record: RecordView<permission::Get>) -> Result<Response, Problem> {
    let GetResponse { record: found, row, .. } = record.read().await?;
    let Some(found) = found else { return gone(&record).await };
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
                ) { (panel("metadata", "Metadata", listed(metadata))) }
            }
            div.stack {
                (panel("about", "Details", about(&record, &found, row.as_ref())))
                (panel(
                    "source", "Source",
                    source_details(&record, &found, row.as_ref()),
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
        .maybe("Happened", found.happened_at.map(moment))
        .maybe("Created", found.created_at.map(moment))
        .maybe("Updated", found.updated_at.map(moment))
        .maybe("Expires", found.expires_at.map(moment))
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
        .maybe("Agent", row.and_then(|row| row.scope.agent_id.as_ref()).map(ToString::to_string))
        .maybe("Who finds it", row.map(|row| words(row.visibility.as_str())));
    scope_details(details, &record.scope)
}

fn corrected_from<P>(record: &RecordView<P>, corrected: &Corrected) -> Markup {
    let from = &corrected.from.provider_record_id;
    let href = record_path(record, &record.binding, from, &record.scope);
    html! {
        "by " (corrected.by) ", " (record.moment(corrected.at)) ", from "
        a href=(href) { code { (from) } }
    }
}

fn source_details(view: &View, found: &Snippet, row: Option<&RecordRow>) -> Markup {
    html! {
        @match &found.source {
            Some(source) => (of_source(view, source, row)),
            None => p.soft { "The host knows no source." }
        }
        @if let Some(claimed) = &found.claimed_source {
            p.help { "Its provider names this source, which nobody has checked:" }
            (of_source(view, claimed, None))
        }
    }
}

fn of_source(view: &View, source: &SourceRef, row: Option<&RecordRow>) -> Markup {
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
