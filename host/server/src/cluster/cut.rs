//! An answer's body that ends early, with an error, where the host that makes it must answer
//! nothing any more.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use tokio::sync::watch;
use tokio::time::sleep;

use super::shared::{Answering, Role};
use memhost_core::{HostLease, Term};

/// How often a host looks at its lease while a body has nothing new.
const LOOK: Duration = Duration::from_millis(500);

/// The lease of the host that makes a body, and its term.
pub(super) type Held = (Arc<HostLease>, Term);

pub(super) struct Cut {
    body: Body,
    /// If this host makes the body itself.
    term: Option<Held>,
    /// The host does not give the group away before the end.
    _answering: Option<Answering>,
    /// Resolves when the host has another role or no lease.
    over: Pin<Box<dyn Future<Output = ()> + Send>>,
}

fn holds(term: Option<&Held>) -> bool {
    term.is_none_or(|(lease, term)| lease.holds(*term))
}

impl Cut {
    /// A body that ends early when the role changes, and one that this host makes itself when its
    /// lease ends.
    pub(super) fn body(
        body: Body,
        mut role: watch::Receiver<Arc<Role>>,
        term: Option<Held>,
        answering: Option<Answering>,
    ) -> Body {
        if body.is_end_stream() {
            return body;
        }
        let looking = term.clone();
        let over = async move {
            loop {
                tokio::select! {
                    _ = role.changed() => return,
                    () = sleep(LOOK), if looking.is_some() => {}
                }
                if !holds(looking.as_ref()) {
                    return;
                }
            }
        };
        let over = Box::pin(over);
        Body::new(Self { body, term, _answering: answering, over }.boxed_unsync())
    }
}

impl HttpBody for Cut {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if holds(self.term.as_ref()) {
            // Most answers have one frame, which is there already.
            let frame = Pin::new(&mut self.body).poll_frame(context);
            if frame.is_ready() || self.over.as_mut().poll(context).is_pending() {
                return frame;
            }
        }
        let error = "another host serves the company by now";
        Poll::Ready(Some(Err(axum::Error::new(error))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
