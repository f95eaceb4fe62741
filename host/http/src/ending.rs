//! Doing what was begun.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;

use super::problem::Problem;

/// A request that was begun is done, also where whoever asked hangs up: what was written is then known here, too, what was
/// spent is counted, and the answer of an idempotency key is kept.
pub async fn detach_from_client(request: Request, next: Next) -> Response {
    let doing = tokio::spawn(next.run(request).instrument(tracing::Span::current()));
    doing.await.unwrap_or_else(|error| {
        tracing::error!(%error, "a request was not done to its end");
        let detail = "the host failed while it was at work on this; its log says more";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "host", detail).into_response()
    })
}
