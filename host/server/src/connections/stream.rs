//! How long the host waits for the next head of a connection, and for the other side to read.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::options::ConnectionOptions;
use super::places::{Connection, Phase};

/// A stream that fails when the host has waited for it for too long.
pub(super) struct Timed<S> {
    inner: S,
    connection: Arc<Connection>,
    head_timeout: Duration,
    idle_timeout: Duration,
    write_timeout: Duration,
    reading: Pin<Box<Sleep>>,
    writing: Pin<Box<Sleep>>,
    /// Whether the other side does not read.
    is_unread: bool,
}

impl<S> Timed<S> {
    pub(super) fn new(inner: S, connection: Arc<Connection>, options: &ConnectionOptions) -> Self {
        Self {
            inner,
            connection,
            head_timeout: Duration::from_millis(options.head_timeout_ms),
            idle_timeout: Duration::from_millis(options.idle_timeout_ms),
            write_timeout: Duration::from_millis(options.write_timeout_ms),
            reading: Box::pin(sleep(Duration::ZERO)),
            writing: Box::pin(sleep(Duration::ZERO)),
            is_unread: false,
        }
    }

    /// When the next head must be there. `None`: the host works on a request, or waits for its
    /// body, which has a deadline of its own.
    fn head_deadline(&self) -> Option<Instant> {
        let state = self.connection.state.lock();
        match (state.phase, state.head_began) {
            // A new connection is there for a request: one that has not come by then does not come.
            (Phase::New, _) => Some(state.since + self.head_timeout),
            (Phase::Idle, Some(began)) => Some(began + self.head_timeout),
            (Phase::Idle, None) => Some(state.since + self.idle_timeout),
            (Phase::Body | Phase::Busy, _) => None,
        }
    }

    fn wrote<T>(
        &mut self,
        done: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        let was_unread = std::mem::replace(&mut self.is_unread, done.is_pending());
        if done.is_ready() {
            return done;
        }
        if !was_unread {
            self.writing.as_mut().reset(Instant::now() + self.write_timeout);
        }
        self.writing.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Timed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let done = Pin::new(&mut self.inner).poll_read(context, buffer);
        if done.is_ready() {
            if buffer.filled().len() > before {
                let mut state = self.connection.state.lock();
                if state.phase == Phase::Idle {
                    state.head_began.get_or_insert_with(Instant::now);
                }
            }
            return done;
        }
        let Some(deadline) = self.head_deadline() else { return Poll::Pending };
        if self.reading.deadline() != deadline {
            self.reading.as_mut().reset(deadline);
        }
        self.reading.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Timed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.wrote(done, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.inner).poll_write_vectored(context, bytes);
        self.wrote(done, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
