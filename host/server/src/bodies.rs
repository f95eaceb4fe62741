//! The bodies of all requests in progress: how many bytes the host has read of them, together.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};
use memhost_http::{MAX_BODY_BYTES, Problem, ProblemCode};

/// The sum of the bodies of all requests in progress, and how much that may be.
#[derive(Debug, Clone)]
pub(crate) struct Bodies {
    bytes: Arc<AtomicUsize>,
    most: usize,
}

impl Bodies {
    /// No bodies yet. All that come may have so many bytes together.
    pub(crate) fn new(most: usize) -> Self {
        Self { bytes: Arc::default(), most }
    }
}

/// The layer that refuses a body which would be too much with all others. A body counts until its request is answered: what
/// is made of it is larger than it. It belongs behind the token, so that nobody without one takes the place of others.
pub(crate) async fn bound(State(bodies): State<Bodies>, request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let most = bodies.most;
    let held = Arc::new(Held { bodies, bytes: AtomicUsize::new(0), is_refused: AtomicBool::new(false) });
    let of_body = Arc::clone(&held);
    let response = next.run(request.map(|inner| Body::new(Counted { inner, held: of_body }))).await;
    if !held.is_refused.load(Ordering::Relaxed) {
        return response;
    }
    let detail = format!(
        "the bodies of all requests in progress have more than {most} bytes; send it again in a second, or raise \
         `max_bodies_bytes` in `[connections]` of the host's configuration"
    );
    Problem::new(ProblemCode::TooManyBodies, detail).into_response()
}

/// What one request has of the sum.
struct Held {
    bodies: Bodies,
    bytes: AtomicUsize,
    is_refused: AtomicBool,
}

impl Held {
    /// Adds bytes that came. Answers whether they are not too many. Of a body that is longer than any that is kept as a
    /// whole, such as the lines of a company, no more is counted.
    fn add(&self, bytes: usize) -> bool {
        let bytes = bytes.min(MAX_BODY_BYTES.saturating_sub(self.bytes.load(Ordering::Relaxed)));
        let add = |sum: usize| sum.checked_add(bytes).filter(|sum| *sum <= self.bodies.most || bytes == 0);
        let is_fine = self.bodies.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok();
        if is_fine {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        } else {
            self.is_refused.store(true, Ordering::Relaxed);
        }
        is_fine
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.bodies.bytes.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
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
