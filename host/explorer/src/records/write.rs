//! Creating a record.

use axum::response::Response;
use maud::{Markup, html};

use super::scope::{address, correctable, inputs, object, record_path, scope_query};
use crate::components::{
    CompanyView, CsrfForm, Field, Page, binding_choices, form, select_field, sentence,
    submit_or_cancel, unix_lines, unprocessable,
};
use crate::guard::redirect;
use memhost_core::Act;
use memhost_http::{Problem, permission};
use memhost_types::{
    BindingKey, OperationKind, RecordId, RecordWrite, SourceKind, SourceRef, UpsertRequest,
    Visibility,
};

scope_query! {
    /// The fields of the form.
    RecordFields {
        binding_key: Option<BindingKey>,
        text: Option<String>,
        summary: Option<String>,
        metadata: Option<String>,
        external_ref: Option<String>,
        id: Option<RecordId>,
        visibility: Option<Visibility>,
    }
}

/// The choices of who finds a record.
fn visibilities() -> [(String, String); 4] {
    [
        ("", "As the binding's policy says"),
        ("company", "Everybody in the company"),
        ("agent", "The agent of the scope"),
        ("person", "The person of the scope"),
    ]
    .map(|(value, label)| (value.to_owned(), label.to_owned()))
}

pub(crate) async fn new(view: CompanyView<permission::RecordUpsert>) -> Markup {
    page(&view, &RecordFields::default(), None)
}

fn page<P>(view: &CompanyView<P>, given: &RecordFields, error: Option<&str>) -> Markup {
    let value = |field: &Option<String>| field.clone().unwrap_or_default();
    let id = given.id.as_ref().map(ToString::to_string).unwrap_or_default();
    let key = given.binding_key.as_ref().map(ToString::to_string).unwrap_or_default();
    let usual = [(String::new(), "Default for the scope".to_owned())];
    let fields = html! {
        (Field::new("text", "Text", &value(&given.text))
            .lines(8)
            .required()
            .help("Agents get this text as it is."))
        @if view.allows(Act::View) {
            (select_field(
                "bindingKey", "Binding", &key, usual.into_iter().chain(binding_choices(view)),
            ))
        } @else {
            (Field::new("bindingKey", "Binding", &key).help("Empty: the default for the scope."))
        }
        fieldset.field {
            legend { "Scope (empty: visible to all agents)" }
            (inputs(view, &given.scope(&view.company)))
        }
        (select_field(
            "visibility", "Who finds it",
            given.visibility.map_or("", Visibility::as_str), visibilities(),
        ))
        details.more open[error.is_some()] {
            summary { "Summary, metadata and source" }
            div.stack {
                (Field::new("summary", "Summary", &value(&given.summary)).lines(2))
                div.json {
                    (Field::new("metadata", "Metadata (JSON)", &value(&given.metadata)).lines(4))
                }
                (Field::new("externalRef", "External reference", &value(&given.external_ref))
                    .help("For example the address of a page. The source also has the issue and \
                           the run above."))
                (Field::new("id", "Record ID", &id)
                    .help("If empty, the provider chooses one. A record with this ID is replaced."))
            }
        }
        (submit_or_cancel("Save", &view.at(&["records"])))
    };
    let body = html! {
        @if let Some(error) = error { p.wrong role="alert" { "Not saved. " (sentence(error)) } }
        (form(view, &view.at(&["new-record"]), &fields))
    };
    Page::new(view, "Create record", "Agents get this record from now on.")
        .crumb("Records", view.at(&["records"]))
        .render(&body)
}

pub(crate) async fn create(
    view: CompanyView<permission::RecordUpsert>,
    CsrfForm(given): CsrfForm<RecordFields>,
) -> Result<Response, Problem> {
    let company = &view.company;
    let refuse = |error: &str| Ok(unprocessable(&page(&view, &given, Some(error))));
    let Some(text) = given.text.as_deref().map(unix_lines) else {
        return refuse("the text is missing");
    };
    let metadata = match object("metadata", given.metadata.as_deref()) {
        Ok(metadata) => metadata,
        Err(problem) => return refuse(&format!("metadata: {}", problem.detail())),
    };
    let scope = given.scope(&view.company);
    let source = SourceRef {
        issue_id: scope.issue_id.clone(),
        run_id: scope.run_id.clone(),
        external_ref: given.external_ref.clone(),
        ..SourceRef::new(SourceKind::ManualNote, company.clone())
    };
    let summary = given.summary.as_deref().map(unix_lines);
    let request = UpsertRequest {
        binding_key: given.binding_key.clone(),
        scope: scope.clone(),
        source: Some(source),
        records: vec![RecordWrite {
            id: given.id.clone(),
            text,
            summary,
            metadata,
            ..RecordWrite::default()
        }],
        visibility: given.visibility,
    };
    let written = match view.service.operations().upsert(&view.caller, request).await {
        Ok(written) => written,
        Err(error) => return refuse(&correctable(error)?),
    };
    view.flash("Record created.");
    // The answer does not name the binding, so it is resolved once more from the scope.
    let (mut within, named) = (scope.clone(), given.binding_key.as_ref());
    let abilities = view
        .service
        .control()
        .abilities(&view.caller, OperationKind::RecordUpsert, &mut within, named)
        .await?;
    match (abilities.binding_key, written.records.first()) {
        (Some(binding), Some(record)) => {
            Ok(redirect(&record_path(&view, &binding, &record.provider_record_id, &scope)))
        }
        _ => Ok(redirect(&address(&view.at(&["records"]), None, &scope))),
    }
}
