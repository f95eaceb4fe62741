//! Long answers go on in small parts, so that compressing one does not hold a thread of the
//! executor.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use memhost_core::MAX_INLINE_BYTES;

/// Gives the answer in parts, between which other tasks run. A stream of events, which has no
/// length, stays as it is.
pub(crate) async fn paced(response: Response) -> Response {
    let bytes = response.body().size_hint().exact().unwrap_or(0);
    if bytes <= MAX_INLINE_BYTES as u64 {
        return response;
    }
    response.map(|inner| Body::new(Paced { inner, rest: Bytes::new(), is_next: true }))
}

struct Paced {
    inner: Body,
    /// What has come and is not passed on.
    rest: Bytes,
    /// Whether the next part may go on at once.
    is_next: bool,
}

impl HttpBody for Paced {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match Pin::new(&mut self.inner).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                other => return other,
            }
        }
        if !std::mem::replace(&mut self.is_next, false) {
            self.is_next = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let length = self.rest.len().min(MAX_INLINE_BYTES);
        let part = self.rest.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let inner = self.inner.size_hint();
        let mut all = SizeHint::new();
        all.set_lower(inner.lower() + rest);
        if let Some(upper) = inner.upper() {
            all.set_upper(upper + rest);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Waker;

    use super::*;

    #[tokio::test]
    async fn a_long_answer_is_whole_and_waits_between_its_parts() {
        let long: Bytes =
            (0..3 * MAX_INLINE_BYTES + 5).map(|n| u8::try_from(n % 251).unwrap()).collect();
        let answer = paced(Response::new(Body::from(long.clone()))).await;
        assert_eq!(answer.body().size_hint().exact(), Some(long.len() as u64));
        let (mut body, mut whole, mut waits) = (pin!(answer.into_body()), Vec::new(), 0);
        let mut context = Context::from_waker(Waker::noop());
        loop {
            match body.as_mut().poll_frame(&mut context) {
                Poll::Pending => waits += 1,
                Poll::Ready(Some(frame)) => {
                    whole.extend_from_slice(&frame.unwrap().into_data().unwrap())
                }
                Poll::Ready(None) => break,
            }
        }
        assert_eq!((whole.as_slice(), waits), (&long[..], 3));
    }
}
