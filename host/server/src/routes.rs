//! The router as a whole: every surface behind what all of them share.

use std::sync::{Arc, LazyLock};

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::generate::GenContext;
use aide::openapi::{self as openapi_types, MediaType, Operation};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};
use tracing::Instrument;

use super::{ServerOptions, openapi};
use memhost_core::{Health, Service};
use memhost_explorer::{REFERENCE_STYLE, reference_page};
use memhost_http::api;
use memhost_http::mcp;
use memhost_http::{AdminToken, Host, Hosting, MAX_BODY_BYTES, Problem, document};

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Answers that are smaller are not worth packing, in bytes.
const WORTH_PACKING: u64 = 1_024;

/// Which surfaces an address has. What load balancers ask for is at every one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Surfaces {
    /// Everything.
    #[default]
    All,
    /// Memory traffic: what agents and their tools reach.
    Runtime,
    /// Governance and whatever people look at.
    Control,
}

/// What the document describes: both planes, and what the host says of itself.
pub(super) fn described() -> ApiRouter<Arc<Service>> {
    behind_the_token(Surfaces::All).merge(open())
}

fn behind_the_token(surfaces: Surfaces) -> ApiRouter<Arc<Service>> {
    let mut routes = ApiRouter::new();
    if surfaces != Surfaces::Control {
        routes = routes.merge(api::runtime());
    }
    if surfaces == Surfaces::Runtime {
        return routes;
    }
    let numbers = ApiRouter::new()
        .api_route(
            "/metrics",
            get_with(metrics, |operation| {
                let operation = operation.id("getMetrics").summary("Read the host's metrics");
                operation.description("In OpenMetrics' text form.").response::<200, Metrics>()
            }),
        )
        .with_path_items(|item| item.tag("host"));
    routes.merge(api::control()).merge(numbers)
}

fn open() -> ApiRouter<Arc<Service>> {
    ApiRouter::new()
        .api_route(
            "/healthz",
            get_with(|| async { "ok\n" }, |operation| operation.id("getHealth").summary("Tell whether the host runs")),
        )
        .api_route(
            "/readyz",
            get_with(readiness, |operation| {
                let operation = operation.id("getReadiness").summary("Tell whether the host takes operations");
                operation.response::<200, String>().response::<503, String>()
            }),
        )
        .api_route(
            "/openapi.json",
            get_with(openapi::serve, |operation| {
                let operation = operation.id("getOpenapi").summary("Read this document");
                operation.description("It has an entity tag.").response::<200, Json<serde_json::Value>>()
            }),
        )
        .with_path_items(|item| item.tag("host"))
}

/// The reference, for people. It is the document as a page: made once, and no secret either.
async fn reference() -> Response {
    const POLICY: &str =
        "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    static PAGE: LazyLock<String> = LazyLock::new(|| reference_page(&openapi(), "reference.css").into_string());
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "public, max-age=300"),
    ];
    (headers, PAGE.as_str()).into_response()
}

async fn reference_style() -> Response {
    ([(CONTENT_TYPE, "text/css; charset=utf-8"), (CACHE_CONTROL, "public, max-age=300")], REFERENCE_STYLE)
        .into_response()
}

/// Every route; what is asked for without a token is behind none.
pub fn router(service: Arc<Service>, token: AdminToken, options: &ServerOptions) -> Router {
    router_of(Surfaces::All, service, token, options)
}

/// The same for some surfaces.
pub(super) fn router_of(
    surfaces: Surfaces,
    service: Arc<Service>,
    token: AdminToken,
    options: &ServerOptions,
) -> Router {
    let (planes, open) = document::undocumented(|| (Router::from(behind_the_token(surfaces)), Router::from(open())));
    let integrations =
        if surfaces == Surfaces::Control { Router::new() } else { memhost_integrations::routes(&options.integrations) };
    let planes = planes
        .merge(integrations)
        // The token is asked for first: the last layer is the outermost. What is done to its end has its answer kept.
        .route_layer(from_fn_with_state(Arc::clone(&service), memhost_http::once))
        .layer(from_fn(memhost_http::detach_from_client))
        .layer(from_fn_with_state((token.clone(), Arc::clone(&service)), memhost_http::require));
    let mut surface = Router::new().merge(planes).merge(open);
    if surfaces != Surfaces::Control {
        let mcp = mcp::routes(&service).layer(from_fn(memhost_http::detach_from_client));
        surface =
            surface.merge(mcp.layer(from_fn_with_state((token.clone(), Arc::clone(&service)), memhost_http::require)));
    }
    if surfaces != Surfaces::Runtime {
        surface = surface
            .route("/reference", get(reference))
            .route("/reference.css", get(reference_style))
            .merge(memhost_explorer::routes(&service, token, options.links.clone()));
    }
    surface
        .fallback(|request: Request| async move {
            let detail = format!("there is nothing at {}", request.uri().path());
            Problem::new(StatusCode::NOT_FOUND, "no_route", detail)
        })
        .method_not_allowed_fallback(|request: Request| async move {
            let detail = format!("{} does not take {}", request.uri().path(), request.method());
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
        })
        .layer(from_fn(memhost_explorer::missing))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        // What is streamed is not packed: it would wait for more.
        .layer(
            CompressionLayer::new().compress_when(
                SizeAbove::new(WORTH_PACKING).and(NotForContentType::SSE).and(NotForContentType::IMAGES),
            ),
        )
        .layer(from_fn(request_id))
        .with_state(service)
}

/// What Prometheus reads, with an operator's token: who uses what how much is nobody else's business.
async fn metrics(State(service): State<Arc<Service>>, _: Host<Hosting>) -> Result<Metrics, Problem> {
    Ok(Metrics(service.metrics()?))
}

struct Metrics(String);

impl IntoResponse for Metrics {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], self.0).into_response()
    }
}

impl OperationOutput for Metrics {
    type Inner = String;

    fn operation_response(_: &mut GenContext, _: &mut Operation) -> Option<openapi_types::Response> {
        let content = std::iter::once(("application/openmetrics-text".to_owned(), MediaType::default())).collect();
        let description = "One metric a line.".to_owned();
        Some(openapi_types::Response { description, content, ..openapi_types::Response::default() })
    }
}

/// For load balancers: whether operations can be taken now.
async fn readiness(State(service): State<Arc<Service>>) -> Response {
    let check = service.readiness().await;
    match check.health {
        Health::Good | Health::Warning => "ready\n".into_response(),
        // The rest is in the log: whoever asks here has no token.
        Health::Bad => {
            tracing::error!(found = check.found, advice = check.advice, "the host is not ready");
            let text = format!("{} does not work\n", check.name);
            (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], text).into_response()
        }
    }
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
