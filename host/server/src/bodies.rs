//! The memory of requests in progress: of their bodies, and of answers that are being sent.
//!
//! The first 64 KiB of each body have a budget of their own, so that large bodies and answers never
//! refuse an ordinary request. They count because a request goes on without its connection, so that
//! the number of connections does not bound them.

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
use memhost_executor::MAX_INLINE_BYTES;
use memhost_http::{MAX_BODY_BYTES, OnlyRead, Problem, ProblemCode, only_reads};
use memhost_types::CompanyId;
use tokio_stream::StreamExt;

use super::byte_budget::{ByteBudget, BytePermit};

/// How much of a body or of an answer does not count as large, in bytes.
const BEGINNING: usize = 64 << 10;

/// The budgets of all requests in progress. Answers have their own: a company that does not read
/// what it asked for can still write.
#[derive(Debug, Clone)]
pub(crate) struct Bodies {
    beginnings: ByteBudget,
    large: ByteBudget,
    answers: ByteBudget,
}

impl Bodies {
    /// Each budget has so many bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            beginnings: ByteBudget::new(most),
            large: ByteBudget::new(most),
            answers: ByteBudget::new(most),
        }
    }
}

/// The layer that counts a request, see [`Bodies::count`].
pub(crate) async fn bound(State(bodies): State<Bodies>, request: Request, next: Next) -> Response {
    let (request, counted) = bodies.count(request);
    counted.answer(next.run(request).await)
}

impl Bodies {
    /// Counts the body of a request as it arrives, until the request is answered: what the host
    /// makes of a body is larger than the body. Reading fails if all bodies together are too large.
    /// Call this after the token was checked, so that nobody without a token takes the place of
    /// others, and within `RequestWork::run`: a request keeps its memory when its client leaves.
    pub(crate) fn count(&self, request: Request) -> (Request, Counted) {
        let company = request.extensions().get::<Caller>().and_then(Caller::company).cloned();
        self.count_of(company, request)
    }

    fn count_of(&self, company: Option<CompanyId>, request: Request) -> (Request, Counted) {
        let is_read = only_reads(&request);
        let answer = self.answers.permit(company.clone());
        if request.body().is_end_stream() {
            return (request, Counted { body: None, answer, is_read });
        }
        let held = Arc::new(Held {
            beginning: self.beginnings.permit(company.clone()),
            rest: self.large.permit(company),
            is_refused: AtomicBool::new(false),
        });
        let body = Some(Arc::clone(&held));
        let count = move |data: Result<Bytes, axum::Error>| match data {
            Ok(data) if !held.add(data.len()) => {
                Err(axum::Error::new("too many bodies are in progress"))
            }
            other => other,
        };
        let request = request.map(|body| Body::from_stream(body.into_data_stream().map(count)));
        (request, Counted { body, answer, is_read })
    }
}

/// A request that is counted.
pub(crate) struct Counted {
    body: Option<Arc<Held>>,
    answer: BytePermit,
    is_read: bool,
}

impl Counted {
    /// Counts the answer until it is sent. What was too much is refused instead.
    pub(crate) fn answer(self, response: Response) -> Response {
        if self.body.is_some_and(|held| held.is_refused.load(Ordering::Relaxed)) {
            return too_much("send it again in a second");
        }
        bound_answer(response, self.answer, self.is_read)
    }
}

/// The bytes of one request's body that have come.
struct Held {
    beginning: BytePermit,
    rest: BytePermit,
    is_refused: AtomicBool,
}

impl Held {
    /// Adds bytes that came. Answers whether they are not too many. A body that is longer than any
    /// that is kept as a whole, such as the lines of a company, counts only up to that length.
    fn add(&self, bytes: usize) -> bool {
        let first = bytes.min(BEGINNING.saturating_sub(self.beginning.bytes()));
        let rest =
            (bytes - first).min((MAX_BODY_BYTES - BEGINNING).saturating_sub(self.rest.bytes()));
        let fits = self.beginning.try_add(first) && self.rest.try_add(rest);
        self.is_refused.fetch_or(!fits, Ordering::Relaxed);
        fits
    }
}

fn too_much(then: &str) -> Response {
    let detail = format!(
        "the bodies of the requests in progress and the answers that are being sent have as many \
         bytes as `max_bodies_bytes` allows, or those of this company half of what others leave; \
         {then}, or raise `max_bodies_bytes` in `[connections]` of the host's configuration"
    );
    Problem::new(ProblemCode::TooManyBodies, detail).into_response()
}

/// Counts an answer until it is sent: a client that asks for long ones and reads slowly would make
/// the host keep as many as it has connections. One that is too much is refused if its request only
/// read. An error after a write would say that nothing was done, so its answer is sent.
///
/// The first 64 KiB do not count: an answer goes with its connection, so the number of connections
/// bounds them. A stream of events or an export has no length and is made while it is sent.
fn bound_answer(mut response: Response, permit: BytePermit, is_read: bool) -> Response {
    let bytes = exact_length(&response).saturating_sub(BEGINNING);
    if !permit.try_add(bytes) {
        if is_read || response.extensions().get::<OnlyRead>().is_some() {
            return too_much(
                "read the answers that were asked for, and ask again in a second or for a shorter \
                 page",
            );
        }
        permit.add(bytes);
    }
    if bytes > 0 {
        response.extensions_mut().insert(Arc::new(permit));
    }
    response
}

/// 0 for a stream.
fn exact_length(response: &Response) -> usize {
    let bytes = response.body().size_hint().exact();
    bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0)
}

/// Sends a long answer in parts between which other tasks run: compressing all of it would hold a
/// thread of the executor. What the answer holds of a budget is given back when it is sent.
pub(crate) fn in_parts(mut response: Response) -> Response {
    let permit = response.extensions_mut().remove::<Arc<BytePermit>>();
    if exact_length(&response) <= MAX_INLINE_BYTES {
        return response;
    }
    response.map(|inner| Body::new(Parts { inner, permit, rest: Bytes::new(), is_next: true }))
}

struct Parts {
    inner: Body,
    permit: Option<Arc<BytePermit>>,
    /// Bytes that came and are not passed on.
    rest: Bytes,
    /// Whether the next part may go on at once.
    is_next: bool,
}

/// A part of an answer. The connection has some of them when the body is gone, and each keeps all
/// of the answer in memory.
struct Part {
    bytes: Bytes,
    _permit: Arc<BytePermit>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl HttpBody for Parts {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match Pin::new(&mut self.inner).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                other => return other,
            }
        }
        if !std::mem::replace(&mut self.is_next, false) {
            self.is_next = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let length = self.rest.len().min(MAX_INLINE_BYTES);
        let bytes = self.rest.split_to(length);
        let bytes = match &self.permit {
            Some(permit) => Bytes::from_owner(Part { bytes, _permit: Arc::clone(permit) }),
            None => bytes,
        };
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let inner = self.inner.size_hint();
        let mut all = SizeHint::new();
        all.set_lower(inner.lower() + rest);
        if let Some(upper) = inner.upper() {
            all.set_upper(upper + rest);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Waker;

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
                    let (request, counted) = bodies.count_of(company, request);
                    in_parts(counted.answer(next.run(request).await))
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

    /// The connection has the last parts of a long answer when the body is gone.
    #[tokio::test]
    async fn an_answer_counts_until_the_last_part_of_it_is_sent() {
        let budget = ByteBudget::new(1 << 20);
        let answer = async || {
            let whole = Response::new(Body::from(vec![b'x'; 1 << 20]));
            in_parts(bound_answer(whole, budget.permit(None), true))
        };
        let body = answer().await.into_body();
        assert_eq!(axum::body::to_bytes(body, usize::MAX).await.unwrap().len(), 1 << 20);
        assert!(budget.permit(None).try_add(1 << 20), "all of it is sent");

        let mut body = answer().await.into_body();
        let frame = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        let last = frame.unwrap().unwrap().into_data().unwrap().split_off(MAX_INLINE_BYTES - 1);
        drop(body);
        assert!(!budget.permit(None).try_add(1 << 20), "a byte of it is not sent");
        drop(last);
        assert!(budget.permit(None).try_add(1 << 20));
    }

    #[tokio::test]
    async fn a_long_answer_is_whole_and_waits_between_its_parts() {
        let long: Bytes =
            (0..3 * MAX_INLINE_BYTES + 5).map(|n| u8::try_from(n % 251).unwrap()).collect();
        let answer = in_parts(Response::new(Body::from(long.clone())));
        assert_eq!(answer.body().size_hint().exact(), Some(long.len() as u64));
        let (mut body, mut whole, mut waits) = (pin!(answer.into_body()), Vec::new(), 0);
        let mut context = Context::from_waker(Waker::noop());
        loop {
            match body.as_mut().poll_frame(&mut context) {
                Poll::Pending => waits += 1,
                Poll::Ready(Some(frame)) => {
                    whole.extend_from_slice(&frame.unwrap().into_data().unwrap());
                }
                Poll::Ready(None) => break,
            }
        }
        assert_eq!((whole.as_slice(), waits), (&long[..], 3));
    }
}
