//! How long the host waits for the body of a request.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::BoxError;
use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use super::places::{Connection, Phase};

/// How many bytes of a body must come in a second, on average, once the time for a body is over.
const LEAST_BYTES_PER_SECOND: u32 = 16 * 1024;

/// The body of a request. Reading it fails when the host has waited for it for too long.
pub(super) struct RequestBody<B> {
    inner: B,
    connection: Arc<Connection>,
    /// How long the host waits at most.
    most: Duration,
    /// How long it may still wait.
    left: Duration,
    /// Since when it waits.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl<B> RequestBody<B> {
    pub(super) fn new(inner: B, connection: Arc<Connection>, time: Duration) -> Self {
        Self { inner, connection, most: time, left: time, waiting: None }
    }

    fn end_waiting(&mut self) {
        if let Some((since, _)) = self.waiting.take() {
            self.left = self.left.saturating_sub(since.elapsed());
            self.connection.enter(Phase::Busy);
        }
    }
}

impl<B> Drop for RequestBody<B> {
    fn drop(&mut self) {
        self.end_waiting();
    }
}

impl<B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin> HttpBody for RequestBody<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(context) {
            this.end_waiting();
            let bytes = frame
                .as_ref()
                .and_then(|frame| frame.as_ref().ok()?.data_ref().map(Bytes::len))
                .unwrap_or(0);
            let more = Duration::from_secs(1) * u32::try_from(bytes).unwrap_or(u32::MAX)
                / LEAST_BYTES_PER_SECOND;
            // What came quickly buys no silence after it.
            this.left = (this.left + more).min(this.most);
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        if this.waiting.is_none() {
            this.connection.enter(Phase::Body);
        }
        let left = this.left;
        let (_, late) = this.waiting.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(sleep_until(now + left)))
        });
        match late.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                this.end_waiting();
                Poll::Ready(Some(Err("the body came too slowly".into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
