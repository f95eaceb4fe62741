//! What an address answers while its host opens: it is well, and everything else has to wait.

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::middleware::from_fn;
use axum::response::IntoResponse;

use super::routes::front;
use memhost_http::{Problem, ProblemCode};

/// The routes of a host that opens. `doing` says what it does, after "it".
pub(super) fn router(doing: impl Fn() -> String + Clone + Send + Sync + 'static) -> Router {
    let answer = move |request: Request| {
        let answer = match request.uri().path() {
            "/healthz" => "ok\n".into_response(),
            "/readyz" => {
                let text = "the host is still starting\n";
                (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], text).into_response()
            }
            _ => {
                let detail =
                    format!("the host is still starting: it {}; send the request again", doing());
                Problem::new(ProblemCode::Starting, detail).into_response()
            }
        };
        async { answer }
    };
    Router::new().fallback(answer).layer(from_fn(front))
}
