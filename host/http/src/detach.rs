//! The task of a request: it goes on when its client disconnects, and waits for turns if it may
//! compute for long.

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::Uri;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;

use super::problem::{Problem, ProblemCode};
use memhost_core::Caller;
use memhost_executor::in_turn;
use memhost_types::CompanyId;

/// A page of more entries than this may take longer than a millisecond to make.
const MAX_SHORT_PAGE: u32 = 100;

/// Whether the address asks for a long answer, or for one that reads much of the log. A limit in
/// the body is known later, by the operation.
fn asks_for_much(uri: &Uri) -> bool {
    let limit =
        uri.query().unwrap_or_default().split('&').find_map(|part| part.strip_prefix("limit="));
    let last = uri.path().rsplit('/').next();
    let reads_much = matches!(last, Some("export" | "evaluation" | "doctor"));
    // A limit in another notation, such as `%31000`, is read later.
    reads_much
        || limit
            .is_some_and(|limit| limit.parse().map_or(true, |limit: u32| limit > MAX_SHORT_PAGE))
}

/// The layer that finishes a started request also when its client disconnects, so that writes and
/// costs are recorded and the answer of an idempotency key is stored. A request with a long body,
/// or with one of an unknown length, is joined, read, checked and answered where it holds up no
/// others; so is one with a long answer.
pub async fn detach_from_client(request: Request, next: Next) -> Response {
    let bytes = request.body().size_hint().upper().filter(|_| !asks_for_much(request.uri()));
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX);
    let company = request.extensions().get::<Caller>().and_then(Caller::company).cloned();
    let task = next.run(request).instrument(tracing::Span::current());
    let task = tokio::spawn(async move {
        in_turn(company.as_ref().map_or("", CompanyId::as_str), bytes, task).await
    });
    task.await.unwrap_or_else(|error| {
        tracing::error!(%error, "a request ended early");
        let detail = "the host failed during this request; look at its log";
        Problem::new(ProblemCode::Host, detail).into_response()
    })
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::http::StatusCode;
    use axum::middleware::from_fn;
    use axum::routing::post;
    use tower::ServiceExt;

    use super::*;
    use memhost_executor::{MAX_SHORT_BYTES, expect_off_executor};

    /// Whether the handler of a request may compute for long: in a debug build it panics where it
    /// may not, which is answered with 500.
    async fn may_compute_for_long(uri: &str, body: Body) -> bool {
        let handler = || async { expect_off_executor("a test", usize::MAX) };
        let router =
            Router::new().route("/{name}", post(handler)).layer(from_fn(detach_from_client));
        let request = axum::http::Request::post(uri).body(body).unwrap();
        router.oneshot(request).await.unwrap().status() == StatusCode::OK
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn long_requests_are_worked_on_in_turns() {
        let unknown = Body::from_stream(tokio_stream::iter([Ok::<_, std::io::Error>("x")]));
        let body = |bytes: usize| Body::from(vec![b' '; bytes]);
        assert!(may_compute_for_long("/query", body(MAX_SHORT_BYTES + 1)).await);
        assert!(may_compute_for_long("/query", unknown).await);
        assert!(may_compute_for_long("/export", body(1)).await);
        let is_checked = cfg!(debug_assertions);
        assert_ne!(may_compute_for_long("/query", body(MAX_SHORT_BYTES)).await, is_checked);
        assert_ne!(may_compute_for_long("/query", Body::empty()).await, is_checked);
    }

    #[test]
    fn long_pages_are_known_by_their_address() {
        let much = [
            "/x/export?cursor=a",
            "/x/operations?kind=query&limit=101",
            "/?limit=%31000",
            "/x/evaluation",
        ];
        let little = ["/runtime/v1/companies/acme/list", "/x/operations?limit=100", "/x/exported"];
        assert!(much.iter().all(|uri| asks_for_much(&uri.parse().unwrap())));
        assert!(!little.iter().any(|uri| asks_for_much(&uri.parse().unwrap())));
    }
}
