//! Correcting a record, and forgetting one.

use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::record::RecordView;
use super::scope::{correctable, object, record_path};
use super::show::gone;
use crate::components::{
    CsrfForm, Field, NoFields, clipped, confirm, form, panel, sentence, submit_or_cancel,
    unix_lines, unprocessable,
};
use crate::guard::redirect;
use memhost_http::{Problem, permission};
use memhost_types::{
    CorrectRequest, CorrectionPatch, ForgetEffect, ForgetRequest, JsonObject, RecordWrite,
};

/// The corrected fields, or an instruction for the provider.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CorrectionFields {
    text: Option<String>,
    summary: Option<String>,
    metadata: Option<String>,
    instruction: Option<String>,
}

/// Metadata as the form shows it.
fn pretty(metadata: &JsonObject) -> Option<String> {
    serde_json::to_string_pretty(metadata).ok().filter(|_| !metadata.is_empty())
}

pub(crate) async fn ask_correct(
    record: RecordView<permission::Correct>,
) -> Result<Response, Problem> {
    let Some(found) = record.get().await? else { return gone(&record).await };
    let given = CorrectionFields {
        text: Some(found.text),
        summary: found.summary,
        metadata: found.metadata.as_ref().and_then(pretty),
        instruction: None,
    };
    Ok(correction(&record, &given, None).into_response())
}

fn correction<P>(record: &RecordView<P>, given: &CorrectionFields, error: Option<&str>) -> Markup {
    let value = |field: &Option<String>| field.clone().unwrap_or_default();
    let action = record.path("correct");
    let as_it_should_be = form(
        record,
        &action,
        &html! {
            (Field::new("text", "Text", &value(&given.text)).lines(10).required())
            (Field::new("summary", "Summary", &value(&given.summary))
                .lines(2)
                .help("Recall shows it in the place of the text: change it with the text, or \
                       leave it empty."))
            div.json {
                (Field::new("metadata", "Metadata (JSON)", &value(&given.metadata)).lines(5))
            }
            (submit_or_cancel("Save", &record.path("records")))
        },
    );
    let in_words = form(
        record,
        &action,
        &html! {
            (Field::new("instruction", "Instruction", &value(&given.instruction))
                .lines(3).required()
                .help("Only a provider with a model supports this. Any other returns an error and \
                       changes nothing."))
            button { "Send to the provider" }
        },
    );
    let body = html! {
        @if let Some(error) = error {
            p.wrong role="alert" { "Nothing was changed. " (sentence(error)) }
        }
        (as_it_should_be)
        details.more open[given.instruction.is_some()] {
            summary { "Describe the correction instead" } (in_words)
        }
    };
    record
        .page("Correct record", "The previous text may no longer be found.")
        .crumb("Record", record.path("records"))
        .render(&body)
}

pub(crate) async fn correct(
    record: RecordView<permission::Correct>,
    CsrfForm(given): CsrfForm<CorrectionFields>,
) -> Result<Response, Problem> {
    let write = match (&given.instruction, object("metadata", given.metadata.as_deref())) {
        (Some(_), _) => None,
        (None, Ok(metadata)) => Some(RecordWrite {
            text: given.text.as_deref().map(unix_lines).unwrap_or_default(),
            summary: given.summary.as_deref().map(unix_lines),
            metadata,
            ..RecordWrite::default()
        }),
        (None, Err(problem)) => {
            let error = format!("metadata: {}", problem.detail());
            return Ok(unprocessable(&correction(&record, &given, Some(&error))));
        }
    };
    if write.as_ref().is_some_and(|write| write.text.is_empty()) {
        let error = "the text is empty; to remove the record, forget it";
        return Ok(unprocessable(&correction(&record, &given, Some(error))));
    }
    let request = CorrectRequest {
        binding_key: Some(record.binding.clone()),
        scope: record.scope.clone(),
        handle: record.handle.clone(),
        patch: CorrectionPatch {
            instruction: given.instruction.as_deref().map(unix_lines),
            record: write,
        },
    };
    match record.service.operations().correct(&record.caller, request).await {
        Ok(answer) => {
            record.flash(match answer.superseded {
                _ if !answer.in_review.is_empty() => {
                    "The correction waits for review. The record stays as it is until then."
                }
                Some(_) => "Corrected. This record replaces the previous one.",
                None => "Corrected.",
            });
            Ok(redirect(&record_path(
                &record,
                &record.binding,
                &answer.record.provider_record_id,
                &record.scope,
            )))
        }
        Err(error) => Ok(unprocessable(&correction(&record, &given, Some(&correctable(error)?)))),
    }
}

/// Asks first: forgetting cannot be undone.
pub(crate) async fn ask_forget(
    record: RecordView<permission::Forget>,
) -> Result<Response, Problem> {
    let Some(found) = record.get().await? else { return gone(&record).await };
    let body = html! {
        (panel("what", "Record", &html! { p.text { (clipped(&found.text, 600)) } }))
        div.stack {
            p.about {
                "Agents no longer get this record. The next page says whether the provider deleted \
                 it or only hides it. This cannot be undone."
            }
            p.about {
                "The operation log keeps who forgot it and its ID, but not its text. If the \
                 binding's policy stores requests, the request that wrote it stays until its \
                 retention ends."
            }
        }
        (confirm(&record, &record.path("forget"), "Forget record", &[], &record.path("records")))
    };
    Ok(record
        .page("Forget record?", "")
        .crumb("Record", record.path("records"))
        .render(&body)
        .into_response())
}

pub(crate) async fn forget(
    record: RecordView<permission::Forget>,
    _: CsrfForm<NoFields>,
) -> Result<Response, Problem> {
    let request = ForgetRequest {
        binding_key: Some(record.binding.clone()),
        scope: record.scope.clone(),
        handles: vec![record.handle.clone()],
    };
    let answer = record.service.operations().forget(&record.caller, request).await?;
    record.flash(match answer.outcomes.first().map(|outcome| outcome.effect) {
        Some(ForgetEffect::Hard) => {
            "Forgotten. The record and everything derived from it are deleted."
        }
        Some(ForgetEffect::Soft) => {
            "Hidden. Agents no longer get it, but the provider still stores it."
        }
        Some(ForgetEffect::HistoryKept) => "Hidden here. An external history may still have it.",
        Some(ForgetEffect::NotFound) | None => {
            "Nothing was forgotten. This scope has no such record."
        }
    });
    Ok(redirect(&record.list()))
}
