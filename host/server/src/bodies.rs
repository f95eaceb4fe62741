//! What the host holds of requests in progress: of their bodies, and of answers that are being
//! sent.
//!
//! There are three sums. The first 64 KiB of each body count in one, and what follows in another:
//! so the large bodies of some never refuse an ordinary request of others. The first 64 KiB count
//! at all because a request goes on without its connection, so that the number of connections does
//! not bound them. The third one is in `answers`.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};
use memhost_core::Caller;
use memhost_http::{MAX_BODY_BYTES, Problem, ProblemCode, only_reads};
use memhost_types::CompanyId;

use super::answers;
use super::sum::{Part, Sum};

/// How much of a body or of an answer does not count with large ones, in bytes.
pub(crate) const BEGINNING: usize = 64 << 10;

/// The sums of all requests in progress.
#[derive(Debug, Clone)]
pub(crate) struct Bodies {
    beginnings: Sum,
    rests: Sum,
    answers: Sum,
}

impl Bodies {
    /// No requests yet. Each sum may have so many bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self { beginnings: Sum::new(most), rests: Sum::new(most), answers: Sum::new(most) }
    }
}

/// The layer that refuses a body which would be too much with all others, and an answer of which
/// that is true. A body counts until its request is answered: what is made of it is larger than it.
/// It belongs behind the token, so that nobody without one takes the place of others, and inside of
/// `detach_from_client`: a client that goes does not take back what its request holds.
pub(crate) async fn bound(State(bodies): State<Bodies>, request: Request, next: Next) -> Response {
    let company = request.extensions().get::<Caller>().and_then(Caller::company).cloned();
    bound_of(&bodies, company, request, next).await
}

async fn bound_of(
    bodies: &Bodies,
    company: Option<CompanyId>,
    request: Request,
    next: Next,
) -> Response {
    let answer = bodies.answers.part(company.clone());
    let is_read = only_reads(request.method(), request.uri().path());
    if request.body().is_end_stream() {
        return answers::bound(next.run(request).await, answer, is_read);
    }
    let held = Arc::new(Held {
        beginning: bodies.beginnings.part(company.clone()),
        rest: bodies.rests.part(company),
        is_refused: AtomicBool::new(false),
    });
    let of_body = Arc::clone(&held);
    let response = next.run(request.map(|inner| Body::new(Counted { inner, held: of_body }))).await;
    if !held.is_refused.load(Ordering::Relaxed) {
        return answers::bound(response, answer, is_read);
    }
    let detail = format!(
        "the bodies of all requests in progress have {} bytes, or those of this company half of \
         what others leave of \
         that; send it again in a second, or raise `max_bodies_bytes` in `[connections]` of the \
         host's configuration",
        held.rest.most()
    );
    Problem::new(ProblemCode::TooManyBodies, detail).into_response()
}

/// What the body of one request has of the sums.
struct Held {
    beginning: Part,
    rest: Part,
    is_refused: AtomicBool,
}

impl Held {
    /// Adds bytes that came. Answers whether they are not too many. A body that is longer than any
    /// that is kept as a whole, such as the lines of a company, counts only up to that length.
    fn add(&self, bytes: usize) -> bool {
        let first = bytes.min(BEGINNING.saturating_sub(self.beginning.bytes()));
        let rest =
            (bytes - first).min((MAX_BODY_BYTES - BEGINNING).saturating_sub(self.rest.bytes()));
        let is_fine = self.beginning.add(first) && self.rest.add(rest);
        if !is_fine {
            self.is_refused.store(true, Ordering::Relaxed);
        }
        is_fine
    }
}

struct Counted {
    inner: Body,
    held: Arc<Held>,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        let Poll::Ready(Some(Ok(frame))) = &polled else { return polled };
        if self.held.add(frame.data_ref().map_or(0, Bytes::len)) {
            return polled;
        }
        Poll::Ready(Some(Err(axum::Error::new("too many bodies are in progress"))))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::http::{Method, StatusCode};
    use axum::middleware::from_fn;
    use axum::routing::{get, post};
    use tokio::sync::Semaphore;
    use tower::ServiceExt;

    use super::*;

    /// What a large body or answer has beyond its beginning.
    const REST: usize = 200 << 10;
    const LARGE: usize = BEGINNING + REST;

    /// Routes behind the layer. `/wait` answers when the test says so. The first part of a path is
    /// the company, and `@` is the operator.
    fn routes(most: usize, go: &Arc<Semaphore>) -> Router {
        let (bodies, go) = (Bodies::new(most), Arc::clone(go));
        // It has its body, or is refused before this.
        let wait = move |_: Bytes| async move { drop(go.acquire().await) };
        let large = || async { vec![b'x'; LARGE] };
        Router::new()
            .route("/{company}/wait", post(wait))
            .route("/{company}/now", post(|_: Bytes| async {}))
            .route("/{company}/large", get(large).post(large))
            .route("/runtime/v1/companies/{company}/query", post(large))
            .layer(from_fn(move |request: Request, next: Next| {
                let bodies = bodies.clone();
                async move {
                    let mut parts = request
                        .uri()
                        .path()
                        .trim_start_matches("/runtime/v1/companies/")
                        .split('/');
                    let company = parts.find(|part| !part.is_empty()).filter(|part| *part != "@");
                    let company = company.and_then(|part| part.parse().ok());
                    bound_of(&bodies, company, request, next).await
                }
            }))
    }

    async fn ask(routes: &Router, method: Method, path: &str, bytes: usize) -> Response {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .body(Body::from(vec![b'x'; bytes]))
            .unwrap();
        routes.clone().oneshot(request).await.unwrap()
    }

    async fn send(routes: &Router, path: &str, bytes: usize) -> StatusCode {
        ask(routes, Method::POST, path, bytes).await.status()
    }

    /// Requests of a company, of which each holds its body, until one is refused. Answers how many.
    async fn hold(routes: &Router, company: &str, bytes: usize) -> usize {
        for held in 0..100 {
            let (mine, path) = (routes.clone(), format!("/{company}/wait"));
            let sent = tokio::spawn(async move { send(&mine, &path, bytes).await });
            // One thread runs them all: what can go on has done so after this.
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            if sent.is_finished() {
                assert_eq!(sent.await.unwrap(), StatusCode::SERVICE_UNAVAILABLE);
                return held;
            }
        }
        100
    }

    #[tokio::test]
    async fn two_greedy_companies_keep_no_third_one_out() {
        let go = Arc::new(Semaphore::new(0));
        let routes = routes(16 * REST, &go);
        let (first, second) = (hold(&routes, "a", LARGE).await, hold(&routes, "b", LARGE).await);
        assert_eq!((first, second), (8, 4));
        for bytes in [60, BEGINNING, LARGE] {
            assert_eq!(
                send(&routes, "/c/now", bytes).await,
                StatusCode::OK,
                "{bytes} bytes of a third company"
            );
        }
        assert_eq!(
            send(&routes, "/a/now", BEGINNING).await,
            StatusCode::OK,
            "an ordinary request of a greedy one"
        );
        go.add_permits(1_000);
        while send(&routes, "/a/now", LARGE).await != StatusCode::OK {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn large_bodies_refuse_no_ordinary_request() {
        let go = Arc::new(Semaphore::new(0));
        let routes = routes(4 * REST, &go);
        assert_eq!(hold(&routes, "@", LARGE).await, 4, "an operator has all of it");
        assert_eq!(send(&routes, "/a/now", BEGINNING + 1).await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(send(&routes, "/a/now", BEGINNING).await, StatusCode::OK);
    }

    /// A request goes on without its connection, so the beginnings of bodies have a bound of their
    /// own.
    #[tokio::test]
    async fn many_small_bodies_have_a_bound() {
        let go = Arc::new(Semaphore::new(0));
        let routes = routes(8 * BEGINNING, &go);
        assert_eq!(hold(&routes, "a", BEGINNING).await, 4);
        assert_eq!(send(&routes, "/b/now", BEGINNING).await, StatusCode::OK);
    }

    #[tokio::test]
    async fn answers_that_nobody_reads_are_refused_to_reads_only() {
        let routes = routes(4 * LARGE, &Arc::new(Semaphore::new(0)));
        let mut held = Vec::new();
        let refused = loop {
            let answer = ask(&routes, Method::GET, "/a/large", 0).await;
            if answer.status() != StatusCode::OK {
                break answer;
            }
            held.push(answer);
            assert!(held.len() < 9, "nothing is refused");
        };
        assert_eq!(
            (refused.status(), &refused.headers()["retry-after"]),
            (StatusCode::SERVICE_UNAVAILABLE, &"1".parse().unwrap())
        );
        let problem = axum::body::to_bytes(refused.into_body(), 9_999).await.unwrap();
        let problem = String::from_utf8(problem.to_vec()).unwrap();
        assert!(
            problem.contains("too_many_bodies") && problem.contains("max_bodies_bytes"),
            "{problem}"
        );
        let query = "/runtime/v1/companies/a/query";
        assert_eq!(
            send(&routes, query, 9).await,
            StatusCode::SERVICE_UNAVAILABLE,
            "a read is sent with POST, too"
        );
        assert_eq!(
            send(&routes, "/a/large", 9).await,
            StatusCode::OK,
            "what was written is answered"
        );
        assert_eq!(
            send(&routes, "/a/now", 9).await,
            StatusCode::OK,
            "a short answer does not count"
        );
        assert_eq!(
            ask(&routes, Method::GET, "/b/large", 0).await.status(),
            StatusCode::OK,
            "another company's"
        );
        let written = ask(&routes, Method::POST, "/a/large", 9).await;
        held.pop();
        assert_eq!(
            send(&routes, query, 9).await,
            StatusCode::SERVICE_UNAVAILABLE,
            "what writes answered counts"
        );
        drop(written);
        assert_eq!(send(&routes, query, 9).await, StatusCode::OK, "what was sent is free");
    }
}
