//! The query playground: the results that an agent would get, how they were ranked, and the context
//! block of a run.

use std::time::{Duration, Instant};

use maud::{Markup, html};

use super::components::{
    CompanyView, FilterForm, Page, QueryParams, View, bytes, clipped, count, duration_us, empty,
    operation_link, panel, sentence, source_link, time, words,
};
use super::records::scope::{address, fields, no_binding, object, record_path, scope_query};
use memhost_core::{Act, ServiceError, render_recall};
use memhost_executor::off_executor;
use memhost_http::{Problem, permission};
use memhost_types::{
    BindingKey, ContextBundle, Contribution, DEFAULT_TOKEN_BUDGET, EXPLORER, Explanation,
    FieldError, Intent, OperationKind, QueryRequest, Recall, RecordHandle, Scope, ScoreKind,
    Snippet,
};

/// The longest text of a result that is shown, in characters.
const SHOWN: usize = 480;

scope_query! {
    /// A query of the playground.
    PlaygroundQuery {
        binding_key: Option<BindingKey>,
        query: Option<String>,
        top_k: Option<u32>,
        intent: Option<Intent>,
        metadata_filter: Option<String>,
        token_budget: Option<u32>,
    }
}

/// The answer to a query.
struct Answer {
    binding: BindingKey,
    scope: Scope,
    bundle: ContextBundle,
    took: Duration,
    /// None: the provider does not support it, or the caller may not ask.
    explained: Option<Result<Explanation, String>>,
    budget: u32,
}

pub(super) async fn page(
    view: CompanyView<permission::Query>,
    params: QueryParams<PlaygroundQuery>,
) -> Result<Markup, Problem> {
    let query = &params.query;
    let scope = query.scope(&view.company);
    let named = query.binding_key.as_ref();
    let abilities = view
        .service
        .control()
        .abilities(&view.caller, OperationKind::Query, &mut scope.clone(), named)
        .await?;
    let answer = match (abilities.binding_key.as_ref().or(named), &query.query) {
        (None, _) if abilities.provider_key.is_none() => no_binding(&view),
        (None, _) => empty("No records yet", &html! { "There is nothing to search." }),
        (_, None) => empty(
            "Enter a query",
            &html! {
                "The results are what an agent in this scope would get. The query is recorded as \
                 your operation."
            },
        ),
        (Some(binding), Some(_)) => {
            let request = request(query, scope)?;
            let explains = abilities.explains && view.allows(Act::Operate(OperationKind::Explain));
            let answer = ask(&view, request, (binding, explains), budget(query)?).await?;
            shown(&view, &answer)
        }
    };
    let intents =
        [("answer", "Answer a question"), ("agent_preamble", "Start a run"), ("browse", "Browse")];
    let form = FilterForm::new(&view, &params).submit("Search").wide_text("query", "Query");
    let form = form.required("intent", "Intent", intents).text("topK", "Limit");
    let form = fields(&view, form)
        .text("metadataFilter", "Metadata (JSON)")
        .text("tokenBudget", "Token budget");
    let body = html! {
        (form)
        div.stack #answer { (answer) }
    };
    Ok(Page::new(&view, "Query", "Search memory as an agent would.").render(&body))
}

fn request(query: &PlaygroundQuery, scope: Scope) -> Result<QueryRequest, Problem> {
    Ok(QueryRequest {
        binding_key: query.binding_key.clone(),
        scope,
        query: query.query.clone().unwrap_or_default(),
        top_k: query.top_k,
        intent: query.intent.unwrap_or_default(),
        metadata_filter: object("metadataFilter", query.metadata_filter.as_deref())?,
        token_budget: None,
        filter: None,
    })
}

/// The token budget, with the limits that a hook has.
fn budget(query: &PlaygroundQuery) -> Result<u32, Problem> {
    match query.token_budget {
        None => Ok(DEFAULT_TOKEN_BUDGET),
        Some(tokens @ 1..=100_000) => Ok(tokens),
        Some(tokens) => {
            let error =
                FieldError::new("tokenBudget", format!("is {tokens}; 1 to 100000 are allowed"));
            Err(ServiceError::from(error).into())
        }
    }
}

async fn ask(
    view: &View,
    request: QueryRequest,
    (binding, explains): (&BindingKey, bool),
    budget: u32,
) -> Result<Answer, Problem> {
    let scope = request.scope.clone();
    let began = Instant::now();
    let caller = view.caller.clone().through(EXPLORER);
    let bundle = view.service.operations().query(&caller, request.clone()).await?;
    let took = began.elapsed();
    let explained = match explains && !bundle.snippets.is_empty() {
        // A binding with records in review refuses to explain. The answer is complete without it.
        true => Some(
            view.service
                .operations()
                .explain(&caller, request)
                .await
                .map_err(|error| error.to_string()),
        ),
        false => None,
    };
    Ok(Answer { binding: binding.clone(), scope, bundle, took, explained, budget })
}

fn shown(view: &View, answer: &Answer) -> Markup {
    let bundle = &answer.bundle;
    let found = bundle.snippets.len() as u64;
    html! {
        dl.stats {
            div { dt { "Results" } dd data-found=(found) { (count(found)) } }
            div {
                dt { "Duration" }
                dd { (duration_us(u64::try_from(answer.took.as_micros()).unwrap_or(u64::MAX))) }
            }
            div { dt { "Binding" } dd { (answer.binding) } }
            div { dt { "Operation" } dd { (recorded(view, answer)) } }
        }
        @if let Some(summary) = &bundle.profile_summary {
            (panel("profile", "Profile", &html! { p.text { (summary) } }))
        }
        @if found == 0 {
            (empty("No results", &html! {
                @let records = address(
                    &view.at(&["records"]), Some(&answer.binding), &answer.scope,
                );
                "Try other words or another scope. " a href=(records) {
                    "Show the records of this scope"
                }
            }))
        } @else {
            div.two {
                (panel("hits", "Results", hits(view, answer)))
                div.stack {
                    (panel("block", "Context for a run", block(answer)))
                    @if let Some(explained) = &answer.explained {
                        (panel("explained", "Query analysis", read(explained)))
                    }
                }
            }
        }
    }
}

fn recorded(view: &View, answer: &Answer) -> Markup {
    let id = answer.bundle.operation_id;
    html! {
        @if view.allows(Act::View) { (operation_link(view, id)) } @else {
            (super::components::short_id(id))
        }
    }
}

fn hits(view: &View, answer: &Answer) -> Markup {
    let explained = answer.explained.as_ref().and_then(|explained| explained.as_ref().ok());
    let all = explained
        .into_iter()
        .flat_map(|explained| &explained.hits)
        .flat_map(|hit| &hit.contributions);
    // Parts are compared with the largest of them all.
    let largest = all.map(|part| part.value.abs()).fold(0.0, f64::max);
    html! {
        ol.list {
            @for hit in &answer.bundle.snippets {
                li.hit data-key=(hit.handle.provider_record_id) {
                    (head(view, answer, hit))
                    p.text { (clipped(&hit.text, SHOWN)) }
                    p.soft { (provenance(view, hit)) }
                    @if let Some(parts) = explained.and_then(
                        |explained| parts(explained, &hit.handle)
                    ) { (bars(parts, largest)) }
                }
            }
        }
    }
}

fn head(view: &View, answer: &Answer, hit: &Snippet) -> Markup {
    let id = &hit.handle.provider_record_id;
    let title =
        hit.summary.as_deref().map_or_else(|| id.to_string(), |summary| clipped(summary, 100));
    html! {
        div.between {
            a.title href=(record_path(view, &answer.binding, id, &answer.scope)) { (title) }
            @if let Some(score) = hit.score {
                span.score {
                    meter min="0" max="1" value=(score) aria-label="Score" {
                        (format!("{score:.3}"))
                    }
                    span { (format!("{score:.3}")) }
                    @if let Some((called, means)) = hit.score_kind.map(score_kind) {
                        span.tag title=(means) { (called) }
                    }
                }
            } @else { span.soft { "no score" } }
        }
    }
}

/// What a kind of score is called, and what it means.
fn score_kind(kind: ScoreKind) -> (&'static str, &'static str) {
    match kind {
        ScoreKind::Similarity => ("similarity", "0 to 1, comparable between results"),
        ScoreKind::Rank => ("rank", "0 to 1, comparable only within this result"),
    }
}

fn provenance(view: &View, hit: &Snippet) -> Markup {
    html! {
        @match &hit.source { Some(source) => (source_link(view, source)), None => "No source" }
        @if let Some(by) = &hit.written_by { " · by " (by) }
        @if let Some(at) = hit.told_at() { " · " (time(at, view.now)) }
        @if let Some(corrected) = &hit.corrected {
            " · corrected by " (corrected.by) " " (time(corrected.at, view.now))
        }
    }
}

fn parts<'a>(explained: &'a Explanation, handle: &RecordHandle) -> Option<&'a [Contribution]> {
    explained.hits.iter().find(|hit| hit.handle == *handle).map(|hit| hit.contributions.as_slice())
}

fn bars(parts: &[Contribution], largest: f64) -> Markup {
    let largest = if largest > 0.0 { largest } else { 1.0 };
    html! {
        dl.parts {
            @for part in parts {
                div {
                    dt { (words(&part.name)) }
                    dd {
                        meter min="0" max=(largest) value=(part.value.abs())
                            aria-label=(part.name) { (part.value) }
                        span { (format!("{:.3}", part.value)) }
                    }
                }
            }
        }
    }
}

fn block(answer: &Answer) -> Markup {
    let bundle = &answer.bundle;
    let recall = Recall {
        snippets: bundle.snippets.clone(),
        profile_summary: bundle.profile_summary.clone(),
        degraded: bundle.degraded.clone(),
    };
    let size = recall.snippets.iter().map(|snippet| snippet.text.len()).sum();
    let block =
        off_executor(size, || render_recall(&[(answer.binding.as_str(), &recall)], answer.budget));
    html! {
        p.help {
            "These results as " code { "pre_run_hydrate" }
            " renders them: " (count(u64::from(block.tokens))) " of "
            (count(u64::from(block.token_budget))) " tokens, " (bytes(block.text.len() as u64)) ", "
            (count(u64::from(block.included))) " results included"
            @if block.omitted > 0 { ", " (count(u64::from(block.omitted))) " omitted" } "."
        }
        @if block.text.is_empty() { p.soft { "No result fits the token budget." } } @else {
            pre #context tabindex="0" { (block.text) }
        }
    }
}

fn read(explained: &Result<Explanation, String>) -> Markup {
    html! {
        @match explained {
            Ok(explained) => pre {
                (serde_json::to_string_pretty(&explained.query).unwrap_or_default())
            },
            Err(reason) => p.soft { (sentence(reason)) },
        }
    }
}
