//! Answers that are being sent. The host keeps each as a whole until the other side has read it, so
//! a client that asks for long ones and reads slowly would make the host keep as many as it has
//! connections.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};
use memhost_http::{OnlyRead, Problem, ProblemCode};

use super::bodies::BEGINNING;
use super::sum::Part;

/// Counts an answer until it is sent. One that would be too much is refused, if its request only
/// read: what a write did is done, and an error would say that it is not. So an answer of a write
/// counts also where it is too much, and is sent.
///
/// The first 64 KiB do not count: an answer goes with its connection, so the number of connections
/// bounds them. What has no length, such as a stream of events or an export, is made while it is
/// sent.
pub(crate) fn bound(response: Response, part: Part, is_read: bool) -> Response {
    let bytes = response
        .body()
        .size_hint()
        .exact()
        .and_then(|bytes| usize::try_from(bytes).ok())
        .unwrap_or(0);
    let bytes = bytes.saturating_sub(BEGINNING);
    if bytes == 0 {
        return response;
    }
    if !part.add(bytes) {
        if is_read || response.extensions().get::<OnlyRead>().is_some() {
            let detail = format!(
                "the answers that are being sent have {} bytes, or those to this company half of \
                 what others leave of \
                 that; read the answers that were asked for, and ask again in a second or for a \
                 shorter page, or raise \
                 `max_bodies_bytes` in `[connections]` of the host's configuration",
                part.most()
            );
            return Problem::new(ProblemCode::TooManyBodies, detail).into_response();
        }
        part.count(bytes);
    }
    response.map(|inner| Body::new(Counted { inner, part: Arc::new(part) }))
}

struct Counted {
    inner: Body,
    part: Arc<Part>,
}

/// Data of an answer. The connection has some of it when the body is gone, and any of it keeps all
/// of it in memory.
struct Data {
    bytes: Bytes,
    _part: Arc<Part>,
}

impl AsRef<[u8]> for Data {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        polled.map_ok(|frame| {
            frame.map_data(|bytes| Bytes::from_owner(Data { bytes, _part: Arc::clone(&self.part) }))
        })
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
    use super::super::sum::Sum;
    use super::*;

    /// A long answer goes out in the parts of `paced`; when its body is gone, the connection still
    /// has the last ones.
    #[tokio::test]
    async fn an_answer_counts_until_the_last_part_of_it_is_sent() {
        let sum = Sum::new(1 << 20);
        let all = vec![b'x'; 1 << 20];
        let answer = bound(Response::new(Body::from(all.clone())), sum.part(None), true);
        assert_eq!(answer.body().size_hint().exact(), Some(1 << 20));
        let answer = super::super::paced::paced(answer).await;
        let sent = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        assert!(sent == all && sum.part(None).add(1 << 20), "all of it is sent");

        let mut body = bound(Response::new(Body::from(all)), sum.part(None), true).into_body();
        let frame = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
        let last = frame.unwrap().unwrap().into_data().unwrap().split_off((1 << 20) - 1);
        drop(body);
        assert!(!sum.part(None).add(1 << 20), "a byte of it is not sent");
        drop(last);
        assert!(sum.part(None).add(1 << 20));
    }
}
