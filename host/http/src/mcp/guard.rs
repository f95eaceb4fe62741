//! The layer in front of the protocol: it refuses pages of other origins and messages of very many
//! values, answers the messages of a batch one by one, and turns errors into problem details.

use std::borrow::Cow;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Json;
use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::header::{ACCEPT, ALLOW, CONTENT_LENGTH, CONTENT_TYPE, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::accept::takes_json;
use super::tools::{is_read, is_write};
use super::{McpTools, batch, params};
use crate::extract::values;
use crate::problem::MAX_BODY_BYTES;
use crate::{OnlyRead, Problem, ProblemCode};
use memhost_executor::{MAX_INLINE_BYTES, off_executor};
use memhost_types::repair_surrogates;

/// The longest error text of the protocol that is passed on, in bytes.
const MAX_TEXT: usize = 4 << 10;
/// What the library wants a client to accept. The host answers JSON only.
const ACCEPTED: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
/// The most JSON values of a message. The library reads a message as each of the protocol's
/// requests in turn, and keeps copies of its values meanwhile. The largest metadata have fewer.
const MAX_VALUES: usize = 200_000;

/// Refuses pages of other origins and messages of very many values, and turns the errors of the
/// protocol's own layer into problem details.
pub(super) async fn guard(request: Request, next: Next) -> Response {
    if !is_local(request.headers()) {
        let detail = "a page of another origin may not call this host; a program on this machine \
                      or with the token, \
                      and a page of localhost, may";
        return Problem::new(ProblemCode::OriginNotAllowed, detail).into_response();
    }
    let (mut request, message) = match read(request).await {
        Ok(read) => read,
        Err(problem) => return problem.into_response(),
    };
    if request.method() != Method::POST {
        return one(request, message, next).await;
    }
    if !takes_json(request.headers()) {
        return problem(StatusCode::NOT_ACCEPTABLE, "").into_response();
    }
    request.headers_mut().insert(ACCEPT, ACCEPTED);
    match batch::is_batch(&message) {
        // Boxed: otherwise every request's future has room for this rare path.
        true => Box::pin(several(request, &message, next)).await,
        false => one(request, message, next).await,
    }
}

/// Answers the messages of a batch in their order.
async fn several(request: Request, body: &Bytes, next: Next) -> Response {
    let (mut parts, _) = request.into_parts();
    let messages = match off_executor(body.len(), || batch::read(&parts.headers, body)) {
        Ok(messages) => messages,
        Err(problem) => return problem.into_response(),
    };
    parts.headers.remove(CONTENT_LENGTH);
    let (mut answers, mut bytes) = (Vec::new(), 0);
    for message in &messages {
        // A notification has no answer, not even that one.
        let is_full = bytes > MAX_BODY_BYTES && message.get("id").is_some();
        let too_long = "the answers before this one are too long for one batch; send it by itself";
        if let Some(why) = batch::wrong(message).or(is_full.then_some(too_long)) {
            answers.push(batch::refusal(message, why));
            continue;
        }
        let alone = off_executor(body.len(), || Bytes::from(message.to_string()));
        let request = Request::from_parts(parts.clone(), Body::from(alone.clone()));
        let (head, answer) = one(request, alone, next.clone()).await.into_parts();
        let answer = to_bytes(answer, usize::MAX).await.unwrap_or_default();
        bytes += answer.len();
        // Notifications and responses have no answer.
        if head.status == StatusCode::ACCEPTED {
            continue;
        }
        let answer: Value =
            off_executor(answer.len(), || serde_json::from_slice(&answer).unwrap_or_default());
        answers.push(match answer.get("jsonrpc") {
            Some(_) => answer,
            None => batch::refusal(message, answer["detail"].as_str().unwrap_or("not answered")),
        });
    }
    if answers.is_empty() {
        return StatusCode::ACCEPTED.into_response();
    }
    let text = off_executor(bytes, || Value::Array(answers).to_string());
    let mut response = ([(CONTENT_TYPE, "application/json")], text).into_response();
    if !off_executor(body.len(), || is_write(body, McpTools::of(&parts.extensions))) {
        response.extensions_mut().insert(OnlyRead);
    }
    response
}

/// Answers one message.
async fn one(mut request: Request, message: Bytes, next: Next) -> Response {
    let tools = McpTools::of(request.extensions());
    let known = Message::of(message.len());
    request.extensions_mut().insert(known.clone());
    let mut response = away(|| known.most(), next.run(request)).await;
    // A long answer to a read may be refused if there is no room for it; a short one never is.
    let is_long = response.body().size_hint().lower() > MAX_INLINE_BYTES as u64;
    if is_long && off_executor(message.len(), || is_read(&message, tools)) {
        response.extensions_mut().insert(OnlyRead);
    }
    if !(response.status().is_client_error() || response.status().is_server_error())
        || is_json(&response)
    {
        return response;
    }
    let (parts, body) = response.into_parts();
    let text = to_bytes(body, MAX_TEXT).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    if is_no_message(parts.status, &text)
        && let Some(answer) = off_executor(message.len(), || params::refusal(&message))
    {
        return Json(answer).into_response();
    }
    let mut refused = problem(parts.status, &text).into_response();
    if let Some(allow) = parts.headers.get(ALLOW) {
        refused.headers_mut().insert(ALLOW, allow.clone());
    }
    refused
}

/// How long a message and its answer are. The library reads the one and writes the other where the
/// request is polled.
#[derive(Clone)]
pub(super) struct Message {
    bytes: usize,
    answer_bytes: Arc<AtomicUsize>,
}

impl Message {
    fn of(bytes: usize) -> Self {
        Self { bytes, answer_bytes: Arc::default() }
    }

    /// The length of the message.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Says how long its answer is.
    pub(super) fn set_answer_bytes(&self, bytes: usize) {
        self.answer_bytes.store(bytes, Ordering::Relaxed);
    }

    fn most(&self) -> usize {
        self.bytes.max(self.answer_bytes.load(Ordering::Relaxed))
    }
}

/// Reads the message, and answers it, too.
async fn read(request: Request) -> Result<(Request, Bytes), Problem> {
    let (parts, body) = request.into_parts();
    let body = Bytes::from_request(Request::from_parts(parts.clone(), body), &());
    let body = body.await.map_err(|rejection| Problem::unreadable(&rejection))?;
    let body = match off_executor(body.len(), || repair_surrogates(&body)) {
        Cow::Owned(repaired) => Bytes::from(repaired),
        Cow::Borrowed(_) => body.clone(),
    };
    if off_executor(body.len(), || values(&body)) > MAX_VALUES {
        return Err(Problem::invalid(format!(
            "the message has more than {MAX_VALUES} JSON values; send fewer"
        )));
    }
    Ok((Request::from_parts(parts, Body::from(body.clone())), body))
}

/// Does what reads a message, or writes an answer, of so many bytes. Where they are many, each part
/// of it is done away from the executor: the library parses and writes where it is polled.
async fn away<T>(bytes: impl Fn() -> usize, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    poll_fn(|context| off_executor(bytes(), || work.as_mut().poll(context))).await
}

/// Whether the body is JSON, but no message of the protocol.
fn is_no_message(status: StatusCode, text: &str) -> bool {
    status == StatusCode::UNSUPPORTED_MEDIA_TYPE && text.starts_with("fail to deserialize")
}

fn problem(status: StatusCode, text: &str) -> Problem {
    match status {
        _ if is_no_message(status, text) => {
            let detail = format!("the body is not a message of the protocol: {text}");
            Problem::invalid(detail)
        }
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Problem::new(
            ProblemCode::UnsupportedMediaType,
            "send JSON with `content-type: application/json`",
        ),
        StatusCode::NOT_ACCEPTABLE => Problem::new(
            ProblemCode::NotAcceptable,
            "send `accept: application/json, text/event-stream`",
        ),
        StatusCode::METHOD_NOT_ALLOWED => {
            let detail =
                "this host keeps no sessions and pushes no messages: send every message with POST";
            Problem::new(ProblemCode::MethodNotAllowed, detail)
        }
        StatusCode::PAYLOAD_TOO_LARGE => Problem::new(ProblemCode::BodyTooLarge, text),
        _ if status.is_client_error() => Problem::new(ProblemCode::InvalidRequest, text),
        _ => Problem::new(ProblemCode::Host, text),
    }
}

fn is_json(response: &Response) -> bool {
    let media = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|media| media.to_str().ok())
        .unwrap_or_default();
    media.starts_with("application/json") || media.starts_with("application/problem+json")
}

/// Whether the request comes from a program, or from a page of this machine. A page whose name was
/// pointed at this machine by somebody else's DNS still says its own name.
fn is_local(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let Some(origin) = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok()) else {
        return false;
    };
    matches!(origin.scheme_str(), Some("http" | "https"))
        && matches!(origin.host(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn long_messages_are_read_away_from_the_executor() {
        let read = |bytes| {
            away(move || bytes, async move {
                memhost_executor::expect_off_executor("a message", usize::MAX);
            })
        };
        tokio::spawn(read(MAX_INLINE_BYTES + 1)).await.unwrap();
        let short = tokio::spawn(read(MAX_INLINE_BYTES)).await;
        assert_eq!(short.is_err(), cfg!(debug_assertions), "a short one is read where it is");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn long_answers_are_written_away_from_the_executor() {
        let message = Message::of(1);
        let known = message.clone();
        let answer = away(move || known.most(), async move {
            message.set_answer_bytes(MAX_INLINE_BYTES + 1);
            tokio::task::yield_now().await;
            memhost_executor::expect_off_executor("an answer", usize::MAX);
        });
        tokio::spawn(answer).await.unwrap();
    }

    #[test]
    fn pages_of_this_machine_and_programs_may_call() {
        let asks = |origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(origin) = origin {
                headers.insert(ORIGIN, HeaderValue::from_bytes(origin.as_bytes()).unwrap());
            }
            is_local(&headers)
        };
        assert!(asks(None));
        for fine in ["http://localhost:6274", "http://127.0.0.1", "https://[::1]:7600"] {
            assert!(asks(Some(fine)), "{fine}");
        }
        for foreign in [
            "http://evil.example",
            "http://evil.example:7600",
            "http://localhost.evil.example",
            "http://127.0.0.1.evil.example",
            "null",
            "",
            "file://",
            "http://\u{ff}",
        ] {
            assert!(!asks(Some(foreign)), "{foreign}");
        }
    }
}
