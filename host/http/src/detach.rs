//! Finishing a started request when its client disconnects.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;

use super::problem::{Problem, ProblemCode};

/// The layer that finishes a started request also when its client disconnects, so that writes and costs are recorded
/// and the answer of an idempotency key is stored.
pub async fn detach_from_client(request: Request, next: Next) -> Response {
    let task = tokio::spawn(next.run(request).instrument(tracing::Span::current()));
    task.await.unwrap_or_else(|error| {
        tracing::error!(%error, "a request ended early");
        let detail = "the host failed during this request; look at its log";
        Problem::new(ProblemCode::Host, detail).into_response()
    })
}
