//! The bodies of all requests in progress: how many bytes the host has read of them, together.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};
use memhost_core::Caller;
use memhost_http::{MAX_BODY_BYTES, Problem, ProblemCode};
use memhost_types::CompanyId;
use parking_lot::Mutex;

/// The sum of the bodies of all requests in progress, and how much that may be.
#[derive(Debug, Clone)]
pub(crate) struct Bodies {
    sums: Arc<Mutex<Sums>>,
    most: usize,
}

#[derive(Debug, Default)]
struct Sums {
    all: usize,
    /// Of each company whose tokens send bodies now. None has 0.
    companies: HashMap<CompanyId, usize>,
}

impl Bodies {
    /// No bodies yet. All that come may have so many bytes together, and those of one company's tokens half as many.
    pub(crate) fn new(most: usize) -> Self {
        Self { sums: Arc::default(), most }
    }

    /// Adds bytes, unless that is too much.
    fn add(&self, company: Option<&CompanyId>, bytes: usize) -> bool {
        let mut sums = self.sums.lock();
        let mine = company.map(|company| sums.companies.get(company).copied().unwrap_or(0) + bytes);
        if bytes > 0 && (sums.all + bytes > self.most || mine.is_some_and(|mine| mine > self.most / 2)) {
            return false;
        }
        sums.all += bytes;
        if let Some((company, mine)) = company.zip(mine).filter(|(_, mine)| *mine > 0) {
            match sums.companies.get_mut(company) {
                Some(sum) => *sum = mine,
                None => {
                    sums.companies.insert(company.clone(), mine);
                }
            }
        }
        true
    }

    fn remove(&self, company: Option<&CompanyId>, bytes: usize) {
        let mut sums = self.sums.lock();
        sums.all -= bytes;
        if let Some(company) = company.filter(|_| bytes > 0)
            && let Some(mine) = sums.companies.get_mut(company)
        {
            *mine -= bytes;
            if *mine == 0 {
                sums.companies.remove(company);
            }
        }
    }
}

/// The layer that refuses a body which would be too much with all others. A body counts until its request is answered: what
/// is made of it is larger than it. It belongs behind the token, so that nobody without one takes the place of others.
pub(crate) async fn bound(State(bodies): State<Bodies>, request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let most = bodies.most;
    let company = request.extensions().get::<Caller>().and_then(Caller::company).cloned();
    let held = Arc::new(Held { bodies, company, bytes: AtomicUsize::new(0), is_refused: AtomicBool::new(false) });
    let of_body = Arc::clone(&held);
    let response = next.run(request.map(|inner| Body::new(Counted { inner, held: of_body }))).await;
    if !held.is_refused.load(Ordering::Relaxed) {
        return response;
    }
    let detail = format!(
        "the bodies of all requests in progress have more than {most} bytes, or those of this company more than half as \
         many; send it again in a second, or raise `max_bodies_bytes` in `[connections]` of the host's configuration"
    );
    Problem::new(ProblemCode::TooManyBodies, detail).into_response()
}

/// What one request has of the sum.
struct Held {
    bodies: Bodies,
    company: Option<CompanyId>,
    bytes: AtomicUsize,
    is_refused: AtomicBool,
}

impl Held {
    /// Adds bytes that came. Answers whether they are not too many. Of a body that is longer than any that is kept as a
    /// whole, such as the lines of a company, no more is counted.
    fn add(&self, bytes: usize) -> bool {
        let bytes = bytes.min(MAX_BODY_BYTES.saturating_sub(self.bytes.load(Ordering::Relaxed)));
        let is_fine = self.bodies.add(self.company.as_ref(), bytes);
        if is_fine {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        } else {
            self.is_refused.store(true, Ordering::Relaxed);
        }
        is_fine
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.bodies.remove(self.company.as_ref(), *self.bytes.get_mut());
    }
}

struct Counted {
    inner: Body,
    held: Arc<Held>,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        let Poll::Ready(Some(Ok(frame))) = &polled else { return polled };
        if self.held.add(frame.data_ref().map_or(0, Bytes::len)) {
            return polled;
        }
        Poll::Ready(Some(Err(axum::Error::new("too many bodies are in progress"))))
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

    #[test]
    fn one_company_has_half_of_the_sum() {
        let (acme, other): (CompanyId, CompanyId) = ("acme".parse().unwrap(), "other".parse().unwrap());
        let bodies = Bodies::new(100);
        assert!(bodies.add(Some(&acme), 30) && bodies.add(Some(&acme), 20));
        assert!(!bodies.add(Some(&acme), 1) && bodies.add(Some(&acme), 0));
        assert!(bodies.add(Some(&other), 50));
        assert!(!bodies.add(None, 1), "all of it is held");
        bodies.remove(Some(&other), 50);
        assert!(bodies.add(None, 50), "an operator has no half");
        bodies.remove(None, 50);
        bodies.remove(Some(&acme), 50);
        assert!(bodies.sums.lock().companies.is_empty() && bodies.sums.lock().all == 0);
    }
}
