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

/// How long the host waits for the rest of a body.
#[derive(Debug)]
struct Patience {
    /// At most.
    most: Duration,
    /// How long it may still wait.
    left: Duration,
}

impl Patience {
    fn new(most: Duration) -> Self {
        Self { most, left: most }
    }

    /// The host has waited.
    fn waited(&mut self, time: Duration) {
        self.left = self.left.saturating_sub(time);
    }

    /// So many bytes came. What came quickly buys no silence after it.
    fn came(&mut self, bytes: usize) {
        let more = Duration::from_secs(1) * u32::try_from(bytes).unwrap_or(u32::MAX)
            / LEAST_BYTES_PER_SECOND;
        self.left = (self.left + more).min(self.most);
    }
}

/// The body of a request. Reading it fails when the host has waited for it for too long.
pub(super) struct RequestBody<B> {
    inner: B,
    connection: Arc<Connection>,
    patience: Patience,
    /// Since when it waits.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl<B> RequestBody<B> {
    pub(super) fn new(inner: B, connection: Arc<Connection>, time: Duration) -> Self {
        Self { inner, connection, patience: Patience::new(time), waiting: None }
    }

    fn end_waiting(&mut self) {
        if let Some((since, _)) = self.waiting.take() {
            self.patience.waited(since.elapsed());
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
            this.patience.came(bytes);
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        if this.waiting.is_none() {
            this.connection.enter(Phase::Body);
        }
        let left = this.patience.left;
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

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(30);

    /// How long a body is waited for whose parts come a second apart.
    fn read_for(parts: u32, bytes: usize) -> (u32, Duration) {
        let mut patience = Patience::new(TIME);
        let came = (0..parts).take_while(|_| {
            patience.waited(Duration::from_secs(1));
            let is_in_time = !patience.left.is_zero();
            patience.came(bytes);
            is_in_time
        });
        (u32::try_from(came.count()).unwrap(), patience.left)
    }

    #[test]
    fn a_body_that_keeps_coming_is_waited_for_and_one_that_does_not_is_not() {
        let second = usize::try_from(LEAST_BYTES_PER_SECOND).unwrap();
        assert_eq!(read_for(100, second), (100, TIME));
        assert_eq!(read_for(100, 1).0, 30);
    }

    #[test]
    fn what_came_quickly_buys_no_silence_after_it() {
        let mut patience = Patience::new(TIME);
        patience.came(8 << 20);
        assert_eq!(patience.left, TIME);
        patience.came(usize::MAX);
        assert_eq!(patience.left, TIME);
        patience.waited(TIME * 2);
        assert_eq!(patience.left, Duration::ZERO);
    }
}
