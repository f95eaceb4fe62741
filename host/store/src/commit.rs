//! The durability of a write, as a future.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::StoreError;

/// What is told when somebody begins to wait for a write.
pub(crate) trait Awaited: Send + Sync {
    fn begin_waiting(&self);
}

/// Resolves when the write is on disk, or has failed. Dropping it does not undo the write; a store
/// may then let the write wait for others for a few milliseconds.
#[must_use = "a write is only acknowledged when its commit resolves"]
pub struct Commit {
    receiver: oneshot::Receiver<Result<(), StoreError>>,
    /// Until the first poll.
    awaited: Option<Arc<dyn Awaited>>,
}

impl fmt::Debug for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Commit").finish_non_exhaustive()
    }
}

impl Commit {
    pub(crate) fn pair() -> (oneshot::Sender<Result<(), StoreError>>, Self) {
        let (sender, receiver) = oneshot::channel();
        (sender, Self { receiver, awaited: None })
    }

    /// The same, of a store that does not hurry before somebody waits.
    pub(crate) fn of(self, awaited: Arc<dyn Awaited>) -> Self {
        Self { awaited: Some(awaited), ..self }
    }

    /// A write that is as durable as it will be.
    pub(crate) fn done() -> Self {
        let (sender, commit) = Self::pair();
        let _ = sender.send(Ok(()));
        commit
    }

    /// A write that failed before it began.
    pub fn failed(error: StoreError) -> Self {
        let (sender, commit) = Self::pair();
        let _ = sender.send(Err(error));
        commit
    }
}

impl Future for Commit {
    type Output = Result<(), StoreError>;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(awaited) = self.awaited.take() {
            awaited.begin_waiting();
        }
        Pin::new(&mut self.receiver).poll(context).map(|received| {
            received.unwrap_or_else(|_| {
                Err(StoreError::Io {
                    action: "writing",
                    message: "the store was closed meanwhile".to_owned(),
                })
            })
        })
    }
}
