//! The bytes of a connection: when a head begins, and whether the other side reads.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::{Connection, Phase};

pub(super) struct Watched<S> {
    inner: S,
    connection: Arc<Connection>,
}

impl<S> Watched<S> {
    pub(super) fn new(inner: S, connection: Arc<Connection>) -> Self {
        Self { inner, connection }
    }

    fn wrote<T>(&self, done: Poll<T>) -> Poll<T> {
        let mut state = self.connection.state.lock();
        let was_unread = state.unread_since.is_some();
        match done.is_pending() {
            true if was_unread => return done,
            true => state.unread_since = Some(Instant::now()),
            false if !was_unread => return done,
            false => state.unread_since = None,
        }
        drop(state);
        self.connection.changed.notify_one();
        done
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let done = Pin::new(&mut self.inner).poll_read(context, buffer);
        if buffer.filled().len() > before {
            let mut state = self.connection.state.lock();
            if state.phase == Phase::Idle && state.head_began.is_none() {
                state.head_began = Some(Instant::now());
                drop(state);
                self.connection.changed.notify_one();
            }
        }
        done
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.wrote(done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.inner).poll_write_vectored(context, bytes);
        self.wrote(done)
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
