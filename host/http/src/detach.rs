//! The task of a request: it goes on when its client disconnects, and has the threads that fit what
//! it computes.

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::Uri;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;

use super::problem::{Problem, ProblemCode};
use memhost_core::{spawn_long, spawn_short};

/// The longest body, in bytes, that is read beside other requests. A step of what is done with it
/// takes less than a millisecond, or goes through `off_executor`.
const MAX_SHORT_BODY: u64 = 64 << 10;

/// A page of more entries than this may take longer than a millisecond to make.
const MAX_SHORT_PAGE: u32 = 100;

/// Whether the address asks for a long answer. A limit in the body is known later: the operation
/// moves its task then.
fn asks_for_much(uri: &Uri) -> bool {
    let limit =
        uri.query().unwrap_or_default().split('&').find_map(|part| part.strip_prefix("limit="));
    let is_export = matches!(uri.path().rsplit('/').next(), Some("export"));
    // A limit in another notation, such as `%31000`, is read later.
    is_export
        || limit
            .is_some_and(|limit| limit.parse().map_or(true, |limit: u32| limit > MAX_SHORT_PAGE))
}

/// The layer that finishes a started request also when its client disconnects, so that writes and
/// costs are recorded and the answer of an idempotency key is stored. A request with a long body,
/// or with one of an unknown length, is joined, read, checked and answered where it holds up no
/// others; so is one with a long answer.
pub async fn detach_from_client(request: Request, next: Next) -> Response {
    let is_long = request.body().size_hint().upper().is_none_or(|bytes| bytes > MAX_SHORT_BODY);
    let is_long = is_long || asks_for_much(request.uri());
    let task = next.run(request).instrument(tracing::Span::current());
    let task = if is_long { spawn_long(task) } else { spawn_short(task) };
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
    use axum::middleware::from_fn;
    use axum::routing::post;
    use tower::ServiceExt;

    use super::*;

    /// The thread that a request runs on.
    async fn thread(uri: &str, body: Body) -> String {
        let thread = || async { std::thread::current().name().unwrap_or_default().to_owned() };
        let router =
            Router::new().route("/{name}", post(thread)).layer(from_fn(detach_from_client));
        let request = axum::http::Request::post(uri).body(body).unwrap();
        let answer = router.oneshot(request).await.unwrap().into_body();
        String::from_utf8(axum::body::to_bytes(answer, 99).await.unwrap().to_vec()).unwrap()
    }

    #[tokio::test]
    async fn long_requests_run_on_threads_of_their_own() {
        let unknown = Body::from_stream(tokio_stream::iter([Ok::<_, std::io::Error>("x")]));
        let body = |bytes: u64| Body::from(vec![b' '; usize::try_from(bytes).unwrap()]);
        assert_eq!(thread("/query", body(MAX_SHORT_BODY + 1)).await, "memhost-long");
        assert_eq!(thread("/query", unknown).await, "memhost-long");
        assert_eq!(thread("/export", body(1)).await, "memhost-long");
        assert_ne!(thread("/query", body(MAX_SHORT_BODY)).await, "memhost-long");
        assert_ne!(thread("/query", Body::empty()).await, "memhost-long");
    }

    #[test]
    fn long_pages_are_known_by_their_address() {
        let much = ["/x/export?cursor=a", "/x/operations?kind=query&limit=101", "/?limit=%31000"];
        let little = ["/runtime/v1/companies/acme/list", "/x/operations?limit=100", "/x/exported"];
        assert!(much.iter().all(|uri| asks_for_much(&uri.parse().unwrap())));
        assert!(!little.iter().any(|uri| asks_for_much(&uri.parse().unwrap())));
    }
}
