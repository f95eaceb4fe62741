//! Serves one connection: each request goes to the routes, until the connection ends.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONNECTION, RETRY_AFTER};
use axum::http::{HeaderValue, Request, Response, StatusCode, Uri};
use axum::response::IntoResponse;
use http_body_util::BodyExt;
use http_body_util::combinators::MapErr;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use memhost_http::{Problem, ProblemCode};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tower::ServiceExt;

use super::places::{Connection, Phase, Place, State};
use super::request_body::RequestBody;
use super::stream::Timed;

/// The longest head of a request, in bytes: its line with the address and the query, and its
/// headers.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;
/// How long a host that stops waits for the next bytes of a request. Without this limit, half a
/// request would delay the end of the host by its whole grace period.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// The routes of an address: first those that it begins with, and from some time on others.
#[derive(Clone)]
pub(crate) struct Routes {
    first: Router,
    then: Arc<OnceLock<Router>>,
}

impl From<Router> for Routes {
    fn from(first: Router) -> Self {
        Self { first, then: Arc::default() }
    }
}

impl Routes {
    /// Replaces them, once.
    pub(crate) fn replace(&self, then: Router) {
        let _ = self.then.set(then);
    }

    fn now(&self) -> Router {
        self.then.get().unwrap_or(&self.first).clone()
    }
}

impl Place {
    /// Serves the connection until it ends, waits for too long, or somebody needs its place. From
    /// `stop` on it ends after the request that it has, if the rest of that comes.
    pub(crate) async fn serve(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        routes: Routes,
        mut stop: watch::Receiver<bool>,
    ) {
        let connection = Arc::clone(&self.connection);
        let options = self.all.options;
        let io = TokioIo::new(Timed::new(stream, Arc::clone(&connection), &options));
        let body_timeout = Duration::from_millis(options.body_timeout_ms);
        let service = service_fn(|request| {
            answer(Arc::clone(&connection), body_timeout, routes.now(), request)
        });
        let mut builder = http1::Builder::new();
        // hyper's own deadline does not tell an idle connection from a slow head.
        builder.header_read_timeout(None).max_buf_size(MAX_HEAD_BYTES);
        let mut serving = pin!(builder.serve_connection(io, service));
        let mut is_stopping = false;
        loop {
            tokio::select! {
                ended = serving.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a connection ended early");
                    }
                    return;
                }
                () = connection.evicted.notified() => return,
                () = stopped(&mut stop), if !is_stopping => {
                    is_stopping = true;
                    serving.as_mut().graceful_shutdown();
                }
                () = waited_in_vain(&connection), if is_stopping => return,
            }
        }
    }
}

/// Resolves once the host has waited for the other side for [`LAST_WAIT`].
async fn waited_in_vain(connection: &Connection) {
    loop {
        let now = Instant::now();
        let since = match &*connection.state.lock() {
            State { phase: Phase::Busy, .. } => now,
            State { since, head_began, .. } => head_began.unwrap_or(*since),
        };
        if since + LAST_WAIT <= now {
            return;
        }
        sleep_until(since + LAST_WAIT).await;
    }
}

/// Says that its connection waits for the next request, once the answer is sent.
struct Answering(Arc<Connection>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.enter(Phase::Idle);
    }
}

/// Resolves when the host stops.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stopped| *stopped).await;
}

async fn answer(
    connection: Arc<Connection>,
    body_timeout: Duration,
    router: Router,
    request: Request<Incoming>,
) -> Result<Response<MapErr<Body, impl FnMut(axum::Error) -> axum::Error>>, Infallible> {
    connection.enter(Phase::Busy);
    let is_for_health = matches!(request.uri().path(), "/healthz" | "/readyz");
    let mut response = if head_bytes(&request) > MAX_HEAD_BYTES {
        // The buffer of a connection may be larger than what is asked for, so that its size is no
        // limit.
        let mut too_large = Response::new(Body::empty());
        *too_large.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        too_large.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        too_large
    } else if connection.is_reserved && !is_for_health {
        let detail = "the host has as many connections as it may have; try again in a second";
        let mut full = Problem::new(ProblemCode::TooManyConnections, detail).into_response();
        full.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        full
    } else {
        let request = request
            .map(|body| Body::new(RequestBody::new(body, Arc::clone(&connection), body_timeout)));
        router.oneshot(request).await.unwrap_or_else(|never| match never {})
    };
    if connection.is_reserved {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        tracing::error!("a route answers with another protocol, which the host does not speak");
    }
    let answering = Answering(connection);
    Ok(response.map(|body| {
        // The body owns it, and is dropped when it is sent.
        body.map_err(move |error| {
            let _ = &answering;
            error
        })
    }))
}

/// What the head of a request has, in bytes, as HTTP/1.1 writes it.
fn head_bytes<B>(request: &Request<B>) -> usize {
    // Spaces, the version and the ends of lines.
    let line = request.method().as_str().len() + length(request.uri()) + 12;
    let fields =
        request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    line + fields.sum::<usize>()
}

/// The length of an address in the first line of a request, in bytes.
fn length(uri: &Uri) -> usize {
    let scheme = uri.scheme_str().map_or(0, |scheme| scheme.len() + "://".len());
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len());
    scheme + authority + uri.path_and_query().map_or(0, |at| at.as_str().len())
}
