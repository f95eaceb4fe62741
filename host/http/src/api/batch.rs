//! Many captures in one request, as NDJSON: one capture per line in, one result per line out.

use std::collections::VecDeque;
use std::sync::Arc;

use aide::axum::ApiRouter;
use axum::http::StatusCode;
use serde::Serialize;

use super::route_table::routes;
use super::runtime::same_company;
use crate::{Authorized, Ndjson, NdjsonAnswer, Problem, ProblemCode, permission, read_json};
use memhost_core::{Caller, Service};
use memhost_types::{CaptureRequest, CaptureResponse, CompanyId, limits};

/// The most lines of one request in flight.
const MAX_IN_FLIGHT: usize = 8;

/// The route below `/runtime/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    routes! { RUNTIME, "memory":
        "/capture/batch" {
            post capture => "captureBatch", "Capture many things in one request",
                "One capture a line, at most 1,000. The answer has one result a line, in the same \
                 order: `line`, \
                 `status`, and the `answer` of the capture or its `problem`.";
        }
    }
}

/// The result of one line.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LineResult {
    /// The line's number in the request, from 1.
    line: usize,
    /// The status that the line would have as a request of its own.
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
    allowed: Authorized<permission::Capture>,
    Ndjson(body): Ndjson,
) -> Result<NdjsonAnswer, Problem> {
    let lines = body.lines().zip(1_usize..).filter(|(line, _)| !line.trim().is_empty());
    let lines: Vec<(String, usize)> =
        lines.map(|(line, number)| (line.to_owned(), number)).collect();
    if lines.is_empty() || lines.len() > limits::MAX_ITEMS {
        let detail =
            format!("the body has {} lines; 1 to {} are allowed", lines.len(), limits::MAX_ITEMS);
        return Err(Problem::invalid(detail));
    }
    let mut results = String::new();
    let mut in_flight = VecDeque::with_capacity(MAX_IN_FLIGHT);
    let mut waiting = lines.into_iter();
    loop {
        while in_flight.len() < MAX_IN_FLIGHT
            && let Some((line, number)) = waiting.next()
        {
            let (service, caller, company) =
                (Arc::clone(&allowed.service), allowed.caller.clone(), allowed.company.clone());
            in_flight.push_back((
                number,
                tokio::spawn(async move { one(&service, &caller, &company, &line).await }),
            ));
        }
        // Results are in the order of the lines.
        let Some((line, task)) = in_flight.pop_front() else { break };
        let result = task.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a line of a batch ended early");
            let detail = "the host failed at this line; look at its log";
            Err(Problem::new(ProblemCode::Host, detail))
        });
        let result = match result {
            Ok(answer) => LineResult {
                line,
                status: StatusCode::OK.as_u16(),
                outcome: Outcome::Answer(answer),
            },
            Err(problem) => {
                LineResult { line, status: problem.status(), outcome: Outcome::Problem(problem) }
            }
        };
        results.push_str(&serde_json::to_string(&result).unwrap_or_default());
        results.push('\n');
    }
    Ok(NdjsonAnswer(results.into()))
}

async fn one(
    service: &Service,
    caller: &Caller,
    company: &CompanyId,
    line: &str,
) -> Result<CaptureResponse, Problem> {
    let request: CaptureRequest = read_json(line.as_bytes())?;
    same_company(company, &request.scope)?;
    Ok(service.operations().capture(caller, request).await?)
}
