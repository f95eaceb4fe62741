//! Correcting a record, and forgetting one.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::show::Named;
use super::within::{Within, wrong};
use super::{clipped, object};
use crate::guard::see;
use crate::kit::{Asked, Field, Page, Signed, View, confirm, form, panel};
use crate::pieces::{again, lines, prose};
use memhost_core::Service;
use memhost_http::{Authorized, Problem, permission};
use memhost_types::{
    CorrectRequest, CorrectionPatch, ForgetEffect, ForgetRequest, JsonObject, OperationKind, RecordWrite,
};

/// The record as it should be, or what is wrong with it in words.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Corrected {
    text: Option<String>,
    summary: Option<String>,
    metadata: Option<String>,
    instruction: Option<String>,
}

/// Metadata as somebody may change it.
fn pretty(metadata: &JsonObject) -> Option<String> {
    serde_json::to_string_pretty(metadata).ok().filter(|_| !metadata.is_empty())
}

pub(crate) async fn ask_correct(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, binding, record)): Path<(String, String, String)>,
    allowed: Authorized<permission::Correct>,
    asked: Asked<Within>,
) -> Result<Response, Problem> {
    let address = (&allowed.company, binding.as_str(), record.as_str());
    let named = Named::of(&service, &allowed.caller, OperationKind::Correct, address, &asked.query).await?;
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
            (Field::new("text", "Text as it should be", &value(&given.text)).lines(10).required())
            (Field::new("summary", "Summary", &value(&given.summary)).lines(2))
            div.json { (Field::new("metadata", "Metadata, as JSON", &value(&given.metadata)).lines(5)) }
            div.actions { button.primary { "Correct it" } a.quiet href=(named.at(view, "")) { "Cancel" } }
        },
    );
    let in_words = form(
        view,
        &action,
        &html! {
            (Field::new("instruction", "What is wrong", &value(&given.instruction)).lines(3).required()
                .help("Only a provider with a model of its own understands this. One without says so, and nothing changes."))
            button { "Ask the provider to correct it" }
        },
    );
    let body = html! {
        @if let Some(error) = error { p.wrong role="alert" { "Nothing was changed. " (prose(error)) } }
        (as_it_should_be)
        details.more open[given.instruction.is_some()] { summary { "Say it in words instead" } (in_words) }
    };
    Page::new(view, "Correct a record", "What it said before may no longer be found.")
        .crumb("Records", named.list(view))
        .crumb("Record", named.at(view, ""))
        .render(&body)
}

pub(crate) async fn correct(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, binding, record)): Path<(String, String, String)>,
    allowed: Authorized<permission::Correct>,
    asked: Asked<Within>,
    Signed(given): Signed<Corrected>,
) -> Result<Response, Problem> {
    let address = (&allowed.company, binding.as_str(), record.as_str());
    let named = Named::of(&service, &allowed.caller, OperationKind::Correct, address, &asked.query).await?;
    let record = match (&given.instruction, object("metadata", given.metadata.as_deref())) {
        (Some(_), _) => None,
        (None, Ok(metadata)) => Some(RecordWrite {
            id: None,
            text: given.text.as_deref().map(lines).unwrap_or_default(),
            summary: given.summary.as_deref().map(lines),
            metadata,
        }),
        (None, Err(problem)) => {
            return Ok(again(&correction(&view, &named, &given, Some(&format!("metadata: {}", problem.detail())))));
        }
    };
    if record.as_ref().is_some_and(|record| record.text.is_empty()) {
        let error = "a record has a text; to have none of it, forget it";
        return Ok(again(&correction(&view, &named, &given, Some(error))));
    }
    let request = CorrectRequest {
        binding_key: Some(named.binding.clone()),
        scope: named.scope.clone(),
        handle: named.handle.clone(),
        patch: CorrectionPatch { instruction: given.instruction.as_deref().map(lines), record },
    };
    match service.correct(&allowed.caller, request).await {
        Ok(answer) => {
            view.say(match answer.superseded {
                Some(_) => "Corrected. This record took the place of the one before.",
                None => "Corrected.",
            });
            Ok(see(&super::place(&view, &named.binding, &answer.record.provider_record_id, &named.scope)))
        }
        Err(error) => Ok(again(&correction(&view, &named, &given, Some(&wrong(error)?)))),
    }
}

/// What was forgotten is, as a rule, gone.
pub(crate) async fn ask_forget(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, binding, record)): Path<(String, String, String)>,
    allowed: Authorized<permission::Forget>,
    asked: Asked<Within>,
) -> Result<Response, Problem> {
    let address = (&allowed.company, binding.as_str(), record.as_str());
    let named = Named::of(&service, &allowed.caller, OperationKind::Forget, address, &asked.query).await?;
    let Some(found) = named.get(&service, &allowed.caller).await? else { return Ok(named.gone(&service, &view).await) };
    let body = html! {
        (panel("what", "What is to be forgotten", &html! { p.text { (clipped(&found.text, 600)) } }))
        div.stack {
            p.about { "No agent is given it any more. Whether the provider also deletes it, or only hides it, it says afterwards: you will read it on the next page. You cannot take it back here." }
            p.about { "The operation log keeps that you did it, and the record's name, but not its text. Where the binding's policy keeps requests, the one that wrote it stays until that ends." }
        }
        (confirm(&view, &named.at(&view, "forget"), "Forget it", &[], &named.at(&view, "")))
    };
    let page = Page::new(&view, "Forget this record?", "")
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
    asked: Asked<Within>,
    _: Signed<Nothing>,
) -> Result<Response, Problem> {
    let address = (&allowed.company, binding.as_str(), record.as_str());
    let named = Named::of(&service, &allowed.caller, OperationKind::Forget, address, &asked.query).await?;
    let request = ForgetRequest {
        binding_key: Some(named.binding.clone()),
        scope: named.scope.clone(),
        handles: vec![named.handle.clone()],
    };
    let answer = service.forget(&allowed.caller, request).await?;
    view.say(match answer.outcomes.first().map(|outcome| outcome.effect) {
        Some(ForgetEffect::Hard) => "Forgotten. It is gone, with whatever was derived from it.",
        Some(ForgetEffect::Soft) => "Hidden. Nobody is given it any more, and the provider still stores it.",
        Some(ForgetEffect::HistoryKept) => "Hidden here. A history elsewhere can still be read.",
        Some(ForgetEffect::NotFound) | None => "Nothing was forgotten: this scope sees no such record.",
    });
    Ok(see(&named.list(&view)))
}
