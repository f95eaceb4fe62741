//! The work of a request: it goes on when its client disconnects, and waits for turns if it may
//! compute for long.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};

use axum::body::HttpBody;
use axum::extract::Request;
use axum::http::Uri;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tracing::{Instrument, Span};

use super::problem::{Problem, ProblemCode};
use memhost_core::Caller;
use memhost_executor::{MAX_SHORT_BYTES, in_turn};
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

/// How a request is worked on: for which company, and whether that may take long.
pub struct RequestWork {
    company: Option<CompanyId>,
    bytes: usize,
    held: Option<HeldUntilDone>,
}

/// An extension of a request that is dropped when its work has ended, also where its client does
/// not wait for that.
#[derive(Clone)]
pub struct HeldUntilDone {
    _guard: Arc<dyn Send + Sync>,
}

impl HeldUntilDone {
    /// Holds a guard.
    pub fn new(guard: impl Send + Sync + 'static) -> Self {
        Self { _guard: Arc::new(guard) }
    }
}

impl RequestWork {
    /// The work of a request whose caller is known. One with a long body, or with one of an unknown
    /// length, is joined, read, checked and answered where it holds up no others; so is one with a
    /// long answer.
    pub fn of(request: &Request) -> Self {
        let bytes = request.body().size_hint().upper().filter(|_| !asks_for_much(request.uri()));
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX);
        let company = request.extensions().get::<Caller>().and_then(Caller::company).cloned();
        let held = request.extensions().get::<HeldUntilDone>().cloned();
        Self { company, bytes, held }
    }

    /// Does the work. If the client disconnects, the work goes on in a task of its own, so that
    /// writes and costs are recorded and the answer of an idempotency key is stored.
    pub fn run(
        self,
        work: impl Future<Output = Response> + Send + 'static,
    ) -> impl Future<Output = Response> + Send {
        let Self { company, bytes, held } = self;
        let mut work: Pin<Box<dyn Future<Output = Response> + Send>> = match held {
            Some(held) => Box::pin(async move {
                let _held = held;
                work.await
            }),
            None => Box::pin(work),
        };
        // Only then: a turn is one more future around the work.
        if bytes > MAX_SHORT_BYTES {
            work = Box::pin(async move {
                in_turn(company.as_ref().map_or("", CompanyId::as_str), bytes, work).await
            });
        }
        Started { work: Some(work), span: Span::current(), is_begun: false }
    }
}

/// The layer that does the work of a request to its end, see [`RequestWork::run`].
pub async fn detach_from_client(request: Request, next: Next) -> Response {
    RequestWork::of(&request).run(next.run(request)).await
}

/// The number of requests of this process that go on without their clients.
static RUNNING: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::Sender::new(0));

/// One of them. It counts until this is dropped.
struct Running;

impl Running {
    fn begin() -> Self {
        RUNNING.send_modify(|count| *count += 1);
        Self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.send_modify(|count| *count -= 1);
    }
}

/// Resolves once no request goes on without its client. A host that stops waits for this.
pub async fn detached_work_ended() {
    // The sender is never dropped.
    let _ = RUNNING.subscribe().wait_for(|count| *count == 0).await;
}

/// The work of a request. The task of its connection polls it; if that drops it unfinished, it goes
/// on in a task of its own.
struct Started {
    /// `None` once it has ended.
    work: Option<Pin<Box<dyn Future<Output = Response> + Send>>>,
    span: Span,
    is_begun: bool,
}

impl Future for Started {
    type Output = Response;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response> {
        self.is_begun = true;
        let Some(work) = &mut self.work else { return Poll::Pending };
        // A panic must not end the connection without an answer.
        let step = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        let done = match step {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(response)) => response,
            Err(_) => {
                tracing::error!("a request panicked");
                let detail = "the host failed during this request; look at its log";
                Problem::new(ProblemCode::Host, detail).into_response()
            }
        };
        self.work = None;
        Poll::Ready(done)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let Some(work) = self.work.take().filter(|_| self.is_begun) else { return };
        if let Ok(runtime) = Handle::try_current() {
            let running = Running::begin();
            let work = async move {
                drop(work.await);
                drop(running);
            };
            runtime.spawn(work.instrument(self.span.clone()));
        }
    }
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
    use memhost_executor::expect_off_executor;

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

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn work_goes_on_without_its_client_once_it_has_begun() {
        let (go, wait) = tokio::sync::oneshot::channel::<()>();
        let (done, is_done) = tokio::sync::oneshot::channel();
        let request = axum::http::Request::new(Body::empty());
        let work = |body: Body| RequestWork::of(&Request::new(body));
        let mut begun = Box::pin(RequestWork::of(&request).run(async move {
            wait.await.unwrap();
            done.send(()).unwrap();
            StatusCode::OK.into_response()
        }));
        assert!(
            begun.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop())).is_pending()
        );
        drop(begun);
        let mut ended = Box::pin(detached_work_ended());
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert!(ended.as_mut().poll(&mut context).is_pending(), "the host would stop before it");
        go.send(()).unwrap();
        ended.await;
        is_done.await.unwrap();
        let (done, is_done) = tokio::sync::oneshot::channel::<()>();
        drop(work(Body::empty()).run(async move {
            done.send(()).unwrap();
            StatusCode::OK.into_response()
        }));
        assert!(is_done.await.is_err(), "what nobody has begun is not done");
    }

    #[tokio::test]
    async fn work_that_panics_is_answered() {
        let request = Request::new(Body::empty());
        let answer = RequestWork::of(&request).run(async { panic!("the work fails") }).await;
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
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
