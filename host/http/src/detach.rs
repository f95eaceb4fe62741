//! The task of a request: it goes on when its client disconnects, and has the threads that fit what it computes.

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::Uri;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;

use super::problem::{Problem, ProblemCode};
use memhost_core::spawn_long;

/// The longest body, in bytes, that is read beside other requests. What is done with it takes less than a millisecond.
const MOST_BESIDE: u64 = 64 << 10;

/// A page of more entries than this may take longer than a millisecond to make.
const MOST_ENTRIES: u32 = 100;

/// Whether the answer may be long: a page of records, or a long page of a log.
fn asks_for_much(uri: &Uri) -> bool {
    let limit = uri.query().unwrap_or_default().split('&').find_map(|part| part.strip_prefix("limit="));
    let is_list = matches!(uri.path().rsplit('/').next(), Some("list" | "export"));
    is_list || limit.is_some_and(|limit| limit.parse().is_ok_and(|limit: u32| limit > MOST_ENTRIES))
}

/// The layer that finishes a started request also when its client disconnects, so that writes and costs are recorded
/// and the answer of an idempotency key is stored. A request with a long body, or with one of an unknown length, is joined,
/// read, checked and answered where it holds up no others; so is one with a long answer.
pub async fn detach_from_client(request: Request, next: Next) -> Response {
    let is_long = request.body().size_hint().upper().is_none_or(|bytes| bytes > MOST_BESIDE);
    let is_long = is_long || asks_for_much(request.uri());
    let task = next.run(request).instrument(tracing::Span::current());
    let task = if is_long { spawn_long(task) } else { tokio::spawn(task) };
    task.await.unwrap_or_else(|error| {
        tracing::error!(%error, "a request ended early");
        let detail = "the host failed during this request; look at its log";
        Problem::new(ProblemCode::Host, detail).into_response()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_pages_are_known_by_their_address() {
        let much = ["/runtime/v1/companies/acme/list", "/x/export?cursor=a", "/x/operations?kind=query&limit=101"];
        let little = ["/runtime/v1/companies/acme/query", "/x/operations?limit=100", "/x/listing", "/?limit=-1"];
        assert!(much.iter().all(|uri| asks_for_much(&uri.parse().unwrap())));
        assert!(!little.iter().any(|uri| asks_for_much(&uri.parse().unwrap())));
    }
}
