//! An answer's body that ends early, with an error, where the host that makes it must answer
//! nothing any more.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use tokio::sync::watch;

use super::shared::Role;
use memhost_core::HostLease;

pub(super) struct Cut {
    body: Body,
    /// The host's own lease, if it makes the body itself.
    lease: Option<Arc<HostLease>>,
    /// Resolves when the host has another role.
    over: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Cut {
    /// A body that ends early when the role changes, or with a lease when it is not held.
    pub(super) fn body(
        body: Body,
        mut role: watch::Receiver<Arc<Role>>,
        lease: Option<Arc<HostLease>>,
    ) -> Body {
        // Most answers have one frame, which is there already.
        if body.is_end_stream() {
            return body;
        }
        let over = async move {
            if role.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        Body::new(Self { body, lease, over: Box::pin(over) }.boxed_unsync())
    }
}

impl HttpBody for Cut {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let is_over = self.over.as_mut().poll(context).is_ready()
            || self.lease.as_ref().is_some_and(|lease| !lease.is_held());
        if is_over {
            let error = "the host that made the answer does not lead any more";
            return Poll::Ready(Some(Err(axum::Error::new(error))));
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
