//! Many captures in one request, as NDJSON: a capture a line, and a result a line.

use std::collections::VecDeque;
use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::post_with;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::about;
use super::runtime::same_company;
use crate::{Authorized, Capturing, JsonLines, Lines, Problem, read_json};
use memhost_core::{Caller, Service};
use memhost_types::{CaptureRequest, CaptureResponse, CompanyId, limits};

/// So many lines of one request are at work side by side.
const AT_ONCE: usize = 8;

/// The route below `/runtime/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    let known = "A capture a line, at most 1,000; a result a line, in their order: `line` and `status`, with the `answer` \
                 of a capture or its `problem`.";
    ApiRouter::new()
        .api_route(
            "/capture/batch",
            post_with(capture, |operation| {
                about("captureBatch", "Take in many things that happened", known)(operation)
                    .response::<200, JsonLines>()
            }),
        )
        .with_path_items(|item| item.tag("memory"))
}

/// What became of a line.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LineResult {
    /// From 1, as they stand in the request.
    line: usize,
    /// As if the line had been a request.
    status: u16,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Outcome {
    Answer(CaptureResponse),
    Problem(Problem),
}

async fn capture(
    State(service): State<Arc<Service>>,
    allowed: Authorized<Capturing>,
    Lines(body): Lines,
) -> Result<Response, Problem> {
    let lines = body.lines().zip(1_usize..).filter(|(line, _)| !line.trim().is_empty());
    let lines: Vec<(String, usize)> = lines.map(|(line, number)| (line.to_owned(), number)).collect();
    if lines.is_empty() || lines.len() > limits::MAX_ITEMS {
        let detail = format!("the body has {} lines; 1 to {} are allowed", lines.len(), limits::MAX_ITEMS);
        return Err(Problem::new(StatusCode::BAD_REQUEST, "invalid_request", detail));
    }
    let mut results = String::new();
    let mut in_flight = VecDeque::with_capacity(AT_ONCE);
    let mut waiting = lines.into_iter();
    loop {
        while in_flight.len() < AT_ONCE
            && let Some((line, number)) = waiting.next()
        {
            let (service, caller, company) = (Arc::clone(&service), allowed.caller.clone(), allowed.company.clone());
            in_flight.push_back((number, tokio::spawn(async move { one(&service, &caller, &company, &line).await })));
        }
        // In the order of the lines, whoever is done first.
        let Some((line, working)) = in_flight.pop_front() else { break };
        let done = working.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a line of a batch was not done to its end");
            let detail = "the host failed while it was at work on this line; its log says more";
            Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "host", detail))
        });
        let result = match done {
            Ok(answer) => LineResult { line, status: StatusCode::OK.as_u16(), outcome: Outcome::Answer(answer) },
            Err(problem) => LineResult { line, status: problem.status(), outcome: Outcome::Problem(problem) },
        };
        results.push_str(&serde_json::to_string(&result).unwrap_or_default());
        results.push('\n');
    }
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], results).into_response())
}

async fn one(service: &Service, caller: &Caller, company: &CompanyId, line: &str) -> Result<CaptureResponse, Problem> {
    let request: CaptureRequest = read_json(line.as_bytes())?;
    same_company(company, &request.scope)?;
    Ok(service.capture(caller, request).await?)
}
