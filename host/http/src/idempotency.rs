//! `idempotency-key`: a write that is sent twice under one key is done once. Both get the same
//! answer; the second has the header `idempotency-replayed`.

use std::error::Error;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, IF_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use http_body_util::LengthLimitError;

use super::auth::header_text;
use super::extract::path_segment;
use super::mcp::{self, McpTools};
use super::problem::{MAX_BODY_BYTES, Problem, ProblemCode};
use super::reads::is_read_with_a_body;
use memhost_core::{Caller, Idempotent, KeptAnswer, Service};
use memhost_executor::off_executor;
use memhost_types::CompanyId;

static KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Names the company of a request at `/mcp`.
const COMPANY: &str = "memhost-company-id";
static REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Processes a request, once for each idempotency key.
pub async fn idempotency(service: &Service, request: Request, next: Next) -> Response {
    match request.headers().contains_key(&KEY) && !request.method().is_safe() {
        // Boxed: otherwise every request's future has room for this rare path.
        true => Box::pin(once(service, request, next)).await,
        false => next.run(request).await,
    }
}

async fn once(service: &Service, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let named = path_segment(&mut parts, &(), "company").await.ok();
    let named: Option<CompanyId> = named.and_then(|company| company.parse().ok());
    let request = Request::from_parts(parts, body);
    let key = request.headers().get(&KEY);
    let is_sound = |key: &&str| {
        (1..=128).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let key = key.and_then(|key| key.to_str().ok()).filter(is_sound);
    let Some(key) = key.map(str::to_owned) else {
        let detail = "is not 1 to 128 printable characters without spaces";
        return Problem::invalid(detail).at("idempotency-key").into_response();
    };
    let caller = request.extensions().get::<Caller>();
    // Integration routes have no company in their address. The token has it.
    let is_mcp = mcp::is_at(request.uri().path());
    let named = if is_mcp { in_header(request.headers()) } else { named };
    let company = named.or_else(|| caller.and_then(|caller| caller.company().cloned()));
    if company.is_none() && is_mcp {
        // The request is refused: it names no company.
        return next.run(request).await;
    }
    if company.is_none() && request.uri().path().starts_with("/api/") {
        // A stored answer must be erased with its company.
        let detail = "is not taken here from the operator; send it with a token of the company, or \
                      send no key";
        return Problem::invalid(detail).at("idempotency-key").into_response();
    }
    // A caller of another company is refused by the route, before a key is looked up or stored.
    if caller
        .is_some_and(|caller| caller.company().is_some() && caller.company() != company.as_ref())
    {
        return next.run(request).await;
    }
    match answer(service, company.as_ref(), &key, request, next).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

/// The company that the scope of a request at `/mcp` names.
fn in_header(headers: &HeaderMap) -> Option<CompanyId> {
    header_text(headers, COMPANY).ok()??.parse().ok()
}

async fn answer(
    service: &Service,
    company: Option<&CompanyId>,
    key: &str,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, MAX_BODY_BYTES).await.map_err(|error| {
        let is_too_large = error.source().is_some_and(|cause| cause.is::<LengthLimitError>());
        match is_too_large {
            true => {
                let detail = format!(
                    "the body is larger than {MAX_BODY_BYTES} bytes; send it without a key"
                );
                Problem::new(ProblemCode::BodyTooLarge, detail)
            }
            false => {
                let detail = format!("the body could not be read: {error}; send it again");
                Problem::new(ProblemCode::UnreadableBody, detail)
            }
        }
    })?;
    let caller = parts.extensions.get::<Caller>().cloned();
    let caller =
        caller.ok_or_else(|| Problem::new(ProblemCode::Unauthenticated, "send a token"))?;
    // What was erased keeps nothing, and every request to it is refused or repeats its erasure.
    let is_erased = company.is_some_and(|company| service.tenancy().tombstone(company).is_some());
    if is_erased || is_read(&parts, &body) {
        return Ok(next.run(Request::from_parts(parts, Body::from(body))).await);
    }
    let (method, uri) = (parts.method.as_str().to_owned(), parts.uri.to_string());
    let is_token = is_token_path(parts.uri.path());
    let conflict = |code, detail: &str| Err(Problem::new(code, detail).at("idempotency-key"));
    let headers = meaning(&parts.headers);
    match service
        .operations()
        .idempotent(&caller, company, key, &[method.as_bytes(), uri.as_bytes(), &headers, &body])
        .await?
    {
        Idempotent::New(ticket) => {
            let response = next.run(Request::from_parts(parts, Body::from(body))).await;
            let (parts, body) = response.into_parts();
            let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
            let status = parts.status;
            // Refusals had no effect, so the key may try again. After a failed provider call the
            // effect is unknown, so the key must not repeat it.
            let is_final = !matches!(status.as_u16(), 401 | 402 | 403 | 429 | 503)
                && !off_executor(body.len(), || {
                    are_refused_tools(&parts, &body) || is_of_the_company(status, &body)
                });
            let media = parts
                .headers
                .get(CONTENT_TYPE)
                .and_then(|media| media.to_str().ok())
                .unwrap_or_default();
            let kept = is_final.then(|| KeptAnswer {
                status: status.as_u16(),
                content_type: media.to_owned(),
                body: if is_token {
                    without_value(&body)
                } else {
                    String::from_utf8_lossy(&body).into_owned()
                },
            });
            service.operations().answered(ticket, kept).await?;
            Ok(Response::from_parts(parts, Body::from(body)))
        }
        Idempotent::Answered(kept) => {
            let status = StatusCode::from_u16(kept.status).unwrap_or(StatusCode::OK);
            let mut response = (status, kept.body).into_response();
            let headers = response.headers_mut();
            headers.remove(CONTENT_TYPE);
            if let Ok(media) = HeaderValue::from_str(&kept.content_type)
                && !kept.content_type.is_empty()
            {
                headers.insert(CONTENT_TYPE, media);
            }
            headers.insert(REPLAYED.clone(), HeaderValue::from_static("true"));
            Ok(response)
        }
        Idempotent::Reused => conflict(
            ProblemCode::IdempotencyKeyReused,
            "this key was used for another request; make a new one for each",
        ),
        Idempotent::Unknown => conflict(
            ProblemCode::IdempotencyUnknown,
            "the host ended during the request of this key, so whether it was done is unknown; \
             look for its effect, \
             and send it again under a new key if that is missing",
        ),
    }
}

/// The headers that make a request another one: the entity tag that it expects, and the scope that
/// it names at `/mcp`.
fn meaning(headers: &HeaderMap) -> Vec<u8> {
    let mut all: Vec<(&str, &[u8])> = headers
        .iter()
        .filter(|(name, _)| **name == IF_MATCH || name.as_str().starts_with("memhost-"))
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .collect();
    all.sort_unstable();
    all.iter().flat_map(|(name, value)| [name.as_bytes(), b"\0", value, b"\0"].concat()).collect()
}

/// Whether tools were refused without an effect, all of them. The protocol answers with the status
/// 200 then.
fn are_refused_tools(parts: &axum::http::response::Parts, body: &[u8]) -> bool {
    let is_json = |media: &HeaderValue| media.as_bytes().starts_with(b"application/json");
    parts.headers.get(CONTENT_TYPE).is_some_and(is_json)
        && serde_json::from_slice::<serde_json::Value>(body).is_ok_and(|answer| match &answer {
            serde_json::Value::Array(batch) => {
                !batch.is_empty() && batch.iter().all(is_refused_tool)
            }
            one => is_refused_tool(one),
        })
}

/// Whether this is the answer of a tool that was refused without an effect: its text begins with
/// the code.
fn is_refused_tool(answer: &serde_json::Value) -> bool {
    let text = answer.pointer("/result/content/0/text").and_then(serde_json::Value::as_str);
    let text = text.unwrap_or_default();
    let code = text.split(':').next().unwrap_or_default();
    // As over HTTP: the company's quota leaves no operation, and a provider's does.
    let is_full = code == ProblemCode::QuotaExceeded.name() && !mcp::names_operation(text);
    let is_error = answer.pointer("/result/isError") == Some(&serde_json::Value::Bool(true));
    is_error && (is_full || NO_EFFECT.contains(&code))
}

/// Whether a request was refused because there is no such company, or because the company's quota
/// is used up. Nothing is kept of it: the company may be made, what is not there has no rows, and
/// the quota may be raised. A refusal by a provider's own quota is kept: it is an operation whose
/// effect is unknown.
fn is_of_the_company(status: StatusCode, body: &[u8]) -> bool {
    matches!(status, StatusCode::NOT_FOUND | StatusCode::INSUFFICIENT_STORAGE)
        && serde_json::from_slice::<serde_json::Value>(body).is_ok_and(|problem| {
            let code = problem.get("code").and_then(|code| code.as_str());
            let is_full = code == Some(ProblemCode::QuotaExceeded.name())
                && problem.get("operationId").is_none();
            is_full || code == Some(ProblemCode::UnknownCompany.name())
        })
}

/// Codes with which a tool's error begins where the provider was not asked.
const NO_EFFECT: [&str; 11] = [
    ProblemCode::UnknownCompany.name(),
    "forbidden",
    "budget_exceeded",
    "rate_limited",
    "busy",
    "circuit_open",
    "provider_loading",
    "provider_missing",
    "binding_disabled",
    "disk_full",
    "store_unavailable",
];

/// Whether a request only reads, by its address and its body. Doing it again has no other effect,
/// and a stored answer would be an old one, of which what was forgotten is gone.
pub fn is_read(parts: &Parts, body: &[u8]) -> bool {
    match parts.uri.path() {
        path if mcp::is_at(path) => {
            let tools = McpTools::of(&parts.extensions);
            !off_executor(body.len(), || mcp::is_write(body, tools))
        }
        path => is_read_with_a_body(path, &parts.extensions),
    }
}

/// Whether a path is below `/control/v1/tokens` or `/control/v1/companies/{company}/tokens`. A
/// company may be named `tokens`.
fn is_token_path(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    matches!(
        parts.as_slice(),
        ["control", "v1", "tokens", ..] | ["control", "v1", "companies", _, "tokens", ..]
    )
}

/// The stored answer of a created token has no value: the value is shown once and stored nowhere.
fn without_value(body: &[u8]) -> String {
    let mut json: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    if let Some(members) = json.as_object_mut() {
        members.remove("value");
    }
    json.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_makes_tokens_is_token_path() {
        for path in [
            "/control/v1/tokens",
            "/control/v1/tokens/1/rotate",
            "/control/v1/companies/acme/tokens",
        ] {
            assert!(is_token_path(path), "{path}");
        }
        for path in
            ["/runtime/v1/companies/tokens/capture/batch", "/control/v1/companies/tokens/erase"]
        {
            assert!(!is_token_path(path), "{path}");
        }
    }

    #[test]
    fn a_batch_had_no_effect_if_none_of_its_tools_had_one() {
        let answer = |text: &str, is_error: bool| {
            serde_json::json!({"result": {
                "isError": is_error, "content": [{"type": "text", "text": text}],
            }})
        };
        let (busy, done) = (answer("busy: try again later", true), answer("Noted.", false));
        let response = axum::http::Response::builder().header(CONTENT_TYPE, "application/json");
        let (parts, ()) = response.body(()).unwrap().into_parts();
        let refused =
            |answer: serde_json::Value| are_refused_tools(&parts, answer.to_string().as_bytes());
        assert!(refused(busy.clone()) && refused(serde_json::json!([busy, busy])));
        assert!(!refused(done.clone()) && !refused(serde_json::json!([busy, done])));
        assert!(!refused(serde_json::json!([])));
    }
}
