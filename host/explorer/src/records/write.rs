//! Writing a record as it is.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};

use super::within::{inputs, wrong};
use super::{asks, object, place};
use crate::guard::see;
use crate::kit::{Field, Page, Signed, View, form};
use crate::pieces::{again, binding_keys, choose, lines, prose};
use memhost_core::{Act, Service};
use memhost_http::{Authorized, Problem, permission};
use memhost_types::{
    BindingKey, CompanyId, OperationKind, RecordId, RecordWrite, SourceKind, SourceRef, UpsertRequest,
};

asks! {
    /// A record as somebody wrote it.
    Written {
        binding_key: Option<BindingKey>,
        text: Option<String>,
        summary: Option<String>,
        metadata: Option<String>,
        external_ref: Option<String>,
        id: Option<RecordId>,
    }
}

pub(crate) async fn new(view: View, allowed: Authorized<permission::Upsert>) -> Markup {
    page(&view, &allowed.company, &Written::default(), None)
}

fn page(view: &View, company: &CompanyId, given: &Written, error: Option<&str>) -> Markup {
    let value = |field: &Option<String>| field.clone().unwrap_or_default();
    let id = given.id.as_ref().map(ToString::to_string).unwrap_or_default();
    let key = given.binding_key.as_ref().map(ToString::to_string).unwrap_or_default();
    let usual = [(String::new(), "The one that answers in the scope".to_owned())];
    let fields = html! {
        (Field::new("text", "Text", &value(&given.text)).lines(8).required().help("What an agent is to be told. It is kept as it is."))
        @if view.allows(Act::View) {
            (choose("bindingKey", "Binding", &key, usual.into_iter().chain(binding_keys(view))))
        } @else { (Field::new("bindingKey", "Binding", &key).help("Empty: the one that answers in the scope.")) }
        fieldset.field {
            legend { "Who sees it: everybody, unless it is an agent's, a subject's or a namespace's" }
            (inputs(view, &given.scope(company)))
        }
        details.more open[error.is_some()] {
            summary { "Summary, metadata and where it came from" }
            div.stack {
                (Field::new("summary", "Summary", &value(&given.summary)).lines(2))
                div.json { (Field::new("metadata", "Metadata, as JSON", &value(&given.metadata)).lines(4)) }
                (Field::new("externalRef", "Where it came from", &value(&given.external_ref)).help("Such as the address of a page. The issue and the run above are named, too."))
                (Field::new("id", "Its name", &id).help("Empty: the provider gives it one. A record that has this name is replaced."))
            }
        }
        div.actions { button.primary { "Write it" } a.quiet href=(view.at(&["records"])) { "Cancel" } }
    };
    let body = html! {
        @if let Some(error) = error { p.wrong role="alert" { "Nothing was written. " (prose(error)) } }
        (form(view, &view.at(&["new-record"]), &fields))
    };
    Page::new(view, "Write a record", "Something that agents should know from now on.")
        .crumb("Records", view.at(&["records"]))
        .render(&body)
}

pub(crate) async fn create(
    State(service): State<Arc<Service>>,
    view: View,
    allowed: Authorized<permission::Upsert>,
    Signed(given): Signed<Written>,
) -> Result<Response, Problem> {
    let company = &allowed.company;
    let refuse = |error: &str| Ok(again(&page(&view, company, &given, Some(error))));
    let Some(text) = given.text.as_deref().map(lines) else { return refuse("a record has a text") };
    let metadata = match object("metadata", given.metadata.as_deref()) {
        Ok(metadata) => metadata,
        Err(problem) => return refuse(&format!("metadata: {}", problem.detail())),
    };
    let scope = given.scope(company);
    let source = SourceRef {
        issue_id: scope.issue_id.clone(),
        run_id: scope.run_id.clone(),
        external_ref: given.external_ref.clone(),
        ..SourceRef::new(SourceKind::ManualNote, company.clone())
    };
    let summary = given.summary.as_deref().map(lines);
    let request = UpsertRequest {
        binding_key: given.binding_key.clone(),
        scope: scope.clone(),
        source: Some(source),
        records: vec![RecordWrite { id: given.id.clone(), text, summary, metadata }],
    };
    let written = match service.upsert(&allowed.caller, request).await {
        Ok(written) => written,
        Err(error) => return refuse(&wrong(error)?),
    };
    view.say("Written. Agents are given it from now on.");
    // Which binding took it was told by nobody but the scope.
    let (mut within, named) = (scope.clone(), given.binding_key.as_ref());
    let abilities = service.abilities(&allowed.caller, OperationKind::RecordUpsert, &mut within, named).await?;
    match (abilities.binding_key, written.records.first()) {
        (Some(binding), Some(record)) => Ok(see(&place(&view, &binding, &record.provider_record_id, &scope))),
        _ => Ok(see(&super::address(&view.at(&["records"]), None, &scope))),
    }
}
