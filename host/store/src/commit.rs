//! The durability of a write, as a future.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::StoreError;

/// Resolves when the write is on disk, or has failed. Dropping it does not undo the write.
#[must_use = "a write is only acknowledged when its commit resolves"]
#[derive(Debug)]
pub struct Commit(oneshot::Receiver<Result<(), StoreError>>);

impl Commit {
    /// A write that is durable once `Ok` is sent, and has failed once an error is sent.
    pub fn pair() -> (oneshot::Sender<Result<(), StoreError>>, Self) {
        let (sender, receiver) = oneshot::channel();
        (sender, Self(receiver))
    }

    /// A write that is as durable as it will be.
    pub fn done() -> Self {
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
        Pin::new(&mut self.0).poll(context).map(|received| {
            received.unwrap_or_else(|_| {
                Err(StoreError::Io {
                    action: "writing",
                    message: "the store was closed meanwhile".to_owned(),
                })
            })
        })
    }
}
