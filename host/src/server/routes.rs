//! The router as a whole: every surface behind what all of them share.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tracing::Instrument;

use crate::api;
use crate::edge::{self, AdminToken, Host, Hosting, MAX_BODY_BYTES, Problem};
use crate::service::{Health, Service};
use crate::ui;

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Every route, behind the token.
pub fn router(service: Arc<Service>, token: AdminToken) -> Router {
    let planes = Router::new()
        .merge(api::runtime())
        .merge(api::control())
        .route("/metrics", get(metrics))
        .layer(from_fn(to_its_end))
        // The token is asked for first: the last layer is the outermost.
        .route_layer(from_fn_with_state(Arc::clone(&service), edge::once))
        .layer(from_fn_with_state((token.clone(), Arc::clone(&service)), edge::require));
    Router::new()
        .merge(planes)
        .merge(ui::routes(&service, token))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readiness))
        .fallback(|request: Request| async move {
            let detail = format!("there is nothing at {}", request.uri().path());
            Problem::new(StatusCode::NOT_FOUND, "no_route", detail)
        })
        .method_not_allowed_fallback(|request: Request| async move {
            let detail = format!("{} does not take {}", request.uri().path(), request.method());
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
        })
        .layer(from_fn(ui::missing))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn(request_id))
        .with_state(service)
}

/// What Prometheus reads, with an operator's token: who uses what how much is nobody else's business.
async fn metrics(State(service): State<Arc<Service>>, _: Host<Hosting>) -> Result<impl IntoResponse, Problem> {
    let text = service.metrics()?;
    Ok(([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text))
}

/// For load balancers: whether operations can be taken now.
async fn readiness(State(service): State<Arc<Service>>) -> (StatusCode, String) {
    let check = service.readiness().await;
    match check.health {
        Health::Good | Health::Warning => (StatusCode::OK, "ready\n".to_owned()),
        // The rest is in the log: whoever asks here has no token.
        Health::Bad => {
            tracing::error!(found = check.found, advice = check.advice, "the host is not ready");
            (StatusCode::SERVICE_UNAVAILABLE, format!("{} does not work\n", check.name))
        }
    }
}

/// A request that was begun is done, also where whoever asked hangs up: what was written is then known here, too, what was
/// spent is counted, and the answer of an idempotency key is kept.
async fn to_its_end(request: Request, next: Next) -> Response {
    let doing = tokio::spawn(next.run(request).instrument(tracing::Span::current()));
    doing.await.unwrap_or_else(|error| {
        tracing::error!(%error, "a request was not done to its end");
        let detail = "the host failed while it was at work on this; its log says more";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "host", detail).into_response()
    })
}

/// Every answer names its request, so that a caller's log and ours can be put side by side.
async fn request_id(request: Request, next: Next) -> Response {
    let given = request.headers().get(&REQUEST_ID).filter(|value| {
        value.len() <= 64 && value.to_str().is_ok_and(|text| text.chars().all(|c| c.is_ascii_graphic()))
    });
    let id = given.cloned().unwrap_or_else(|| {
        let made = uuid::Uuid::now_v7().to_string();
        HeaderValue::from_str(&made).unwrap_or_else(|_| HeaderValue::from_static("-"))
    });
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or("-"), %method, path);
    let mut response = next.run(request).instrument(span.clone()).await;
    tracing::debug!(parent: &span, status = response.status().as_u16(), "answered");
    response.headers_mut().insert(REQUEST_ID.clone(), id);
    response
}
