//! Correcting a record, and forgetting one.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::scope::{ScopeQuery, wrong};
use super::show::Named;
use super::{clipped, object};
use crate::components::{
    CsrfForm, Field, Page, QueryParams, View, confirm, form, panel, sentence, unix_lines, unprocessable,
};
use crate::guard::see;
use memhost_core::Service;
use memhost_http::{Authorized, Problem, permission};
use memhost_types::{
    CorrectRequest, CorrectionPatch, ForgetEffect, ForgetRequest, JsonObject, OperationKind, RecordWrite,
};

/// The corrected fields, or an instruction for the provider.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Corrected {
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
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, binding, record)): Path<(String, String, String)>,
    allowed: Authorized<permission::Correct>,
    params: QueryParams<ScopeQuery>,
) -> Result<Response, Problem> {
    let address = (&allowed.company, binding.as_str(), record.as_str());
    let named = Named::of(&service, &allowed.caller, OperationKind::Correct, address, &params.query).await?;
    let Some(found) = named.get(&service, &allowed.caller).await? else { return Ok(named.gone(&service, &view).await) };
    let given = Corrected {
        text: Some(found.text),
        summary: found.summary,
        metadata: found.metadata.as_ref().and_then(pretty),
        instruction: None,
    };
    Ok(correction(&view, &named, &given, None).into_response())
}

fn correction(view: &View, named: &Named, given: &Corrected, error: Option<&str>) -> Markup {
    let value = |field: &Option<String>| field.clone().unwrap_or_default();
    let action = named.at(view, "correct");
    let as_it_should_be = form(
        view,
        &action,
        &html! {
            (Field::new("text", "Text", &value(&given.text)).lines(10).required())
            (Field::new("summary", "Summary", &value(&given.summary)).lines(2))
            div.json { (Field::new("metadata", "Metadata (JSON)", &value(&given.metadata)).lines(5)) }
            div.actions { button.primary { "Save" } a.quiet href=(named.at(view, "")) { "Cancel" } }
        },
    );
    let in_words = form(
        view,
        &action,
        &html! {
            (Field::new("instruction", "Instruction", &value(&given.instruction)).lines(3).required()
                .help("Only a provider with a model supports this. Any other returns an error and changes nothing."))
            button { "Send to the provider" }
        },
    );
    let body = html! {
        @if let Some(error) = error { p.wrong role="alert" { "Nothing was changed. " (sentence(error)) } }
        (as_it_should_be)
        details.more open[given.instruction.is_some()] { summary { "Describe the correction instead" } (in_words) }
    };
    Page::new(view, "Correct record", "The previous text may no longer be found.")
        .crumb("Records", named.list(view))
        .crumb("Record", named.at(view, ""))
        .render(&body)
}

pub(crate) async fn correct(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, binding, record)): Path<(String, String, String)>,
    allowed: Authorized<permission::Correct>,
    params: QueryParams<ScopeQuery>,
    CsrfForm(given): CsrfForm<Corrected>,
) -> Result<Response, Problem> {
    let address = (&allowed.company, binding.as_str(), record.as_str());
    let named = Named::of(&service, &allowed.caller, OperationKind::Correct, address, &params.query).await?;
    let record = match (&given.instruction, object("metadata", given.metadata.as_deref())) {
        (Some(_), _) => None,
        (None, Ok(metadata)) => Some(RecordWrite {
            id: None,
            text: given.text.as_deref().map(unix_lines).unwrap_or_default(),
            summary: given.summary.as_deref().map(unix_lines),
            metadata,
        }),
        (None, Err(problem)) => {
            return Ok(unprocessable(&correction(
                &view,
                &named,
                &given,
                Some(&format!("metadata: {}", problem.detail())),
            )));
        }
    };
    if record.as_ref().is_some_and(|record| record.text.is_empty()) {
        let error = "the text is empty; to remove the record, forget it";
        return Ok(unprocessable(&correction(&view, &named, &given, Some(error))));
    }
    let request = CorrectRequest {
        binding_key: Some(named.binding.clone()),
        scope: named.scope.clone(),
        handle: named.handle.clone(),
        patch: CorrectionPatch { instruction: given.instruction.as_deref().map(unix_lines), record },
    };
    match service.correct(&allowed.caller, request).await {
        Ok(answer) => {
            view.say(match answer.superseded {
                Some(_) => "Corrected. This record replaces the previous one.",
                None => "Corrected.",
            });
            Ok(see(&super::place(&view, &named.binding, &answer.record.provider_record_id, &named.scope)))
        }
        Err(error) => Ok(unprocessable(&correction(&view, &named, &given, Some(&wrong(error)?)))),
    }
}

/// Asks first: forgetting cannot be undone.
pub(crate) async fn ask_forget(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, binding, record)): Path<(String, String, String)>,
    allowed: Authorized<permission::Forget>,
    params: QueryParams<ScopeQuery>,
) -> Result<Response, Problem> {
    let address = (&allowed.company, binding.as_str(), record.as_str());
    let named = Named::of(&service, &allowed.caller, OperationKind::Forget, address, &params.query).await?;
    let Some(found) = named.get(&service, &allowed.caller).await? else { return Ok(named.gone(&service, &view).await) };
    let body = html! {
        (panel("what", "Record", &html! { p.text { (clipped(&found.text, 600)) } }))
        div.stack {
            p.about {
                "Agents no longer get this record. The next page says whether the provider deleted it or only hides it. This cannot be undone."
            }
            p.about {
                "The operation log keeps who forgot it and its ID, but not its text. If the binding's policy stores requests, the request that wrote it stays until its retention ends."
            }
        }
        (confirm(&view, &named.at(&view, "forget"), "Forget record", &[], &named.at(&view, "")))
    };
    let page = Page::new(&view, "Forget record?", "")
        .crumb("Records", named.list(&view))
        .crumb("Record", named.at(&view, ""))
        .render(&body);
    Ok(page.into_response())
}

#[derive(Deserialize)]
pub(crate) struct Nothing {}

pub(crate) async fn forget(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, binding, record)): Path<(String, String, String)>,
    allowed: Authorized<permission::Forget>,
    params: QueryParams<ScopeQuery>,
    _: CsrfForm<Nothing>,
) -> Result<Response, Problem> {
    let address = (&allowed.company, binding.as_str(), record.as_str());
    let named = Named::of(&service, &allowed.caller, OperationKind::Forget, address, &params.query).await?;
    let request = ForgetRequest {
        binding_key: Some(named.binding.clone()),
        scope: named.scope.clone(),
        handles: vec![named.handle.clone()],
    };
    let answer = service.forget(&allowed.caller, request).await?;
    view.say(match answer.outcomes.first().map(|outcome| outcome.effect) {
        Some(ForgetEffect::Hard) => "Forgotten. The record and everything derived from it are deleted.",
        Some(ForgetEffect::Soft) => "Hidden. Agents no longer get it, but the provider still stores it.",
        Some(ForgetEffect::HistoryKept) => "Hidden here. An external history may still have it.",
        Some(ForgetEffect::NotFound) | None => "Nothing was forgotten. This scope has no such record.",
    });
    Ok(see(&named.list(&view)))
}
