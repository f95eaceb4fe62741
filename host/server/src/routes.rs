//! The router of all surfaces, with the layers that they share.

use std::convert::Infallible;
use std::sync::{Arc, LazyLock};

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::generate::GenContext;
use aide::openapi::Operation;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, RETRY_AFTER, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use tower::{Layer, ServiceExt, service_fn};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};
use tracing::Instrument;

use super::ServerOptions;
use super::bodies::{self, Bodies};
use super::openapi::Document;
use memhost_core::{Health, Service};
use memhost_executor::off_executor;
use memhost_explorer::{REFERENCE_STYLE, reference_page};
use memhost_http::{
    AdminToken, HostAuthorized, MAX_BODY_BYTES, Problem, ProblemCode, RequestWork, Responses, api,
    caller_of, document, idempotency, mcp, media_answer, permission,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The least size of an answer that is compressed, in bytes.
const MIN_COMPRESSED: u64 = 1_024;

/// The surfaces of an address. Health and readiness are at every address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Surfaces {
    /// Everything.
    #[default]
    All,
    /// Memory traffic: what agents and their tools reach.
    Runtime,
    /// Governance and the pages for people.
    Control,
}

static DOCUMENT: LazyLock<Document> = LazyLock::new(|| Document::of(described));

/// The OpenAPI 3.1 document of every route. It is the same for all hosts of one build.
pub fn openapi() -> Value {
    DOCUMENT.value.clone()
}

/// The routes of the document. Each layer that `router_of` puts in front of a group describes
/// itself in that group here.
fn described() -> ApiRouter<Arc<Service>> {
    let planes = behind_the_token(Surfaces::All)
        .with_path_items(document::every_request)
        .with_path_items(document::idempotent)
        .with_path_items(document::behind_the_token);
    let open =
        open().with_path_items(document::every_request).with_path_items(document::without_a_token);
    planes.merge(open)
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
                operation.description("In the text format of OpenMetrics.")
            }),
        )
        .with_path_items(|item| item.tag("host"))
        .with_path_items(document::plane("host"));
    routes.merge(api::control()).merge(numbers)
}

fn open() -> ApiRouter<Arc<Service>> {
    ApiRouter::new()
        .api_route(
            "/healthz",
            get_with(
                || async { "ok\n" },
                |operation| {
                    operation.id("getHealth").summary(
                        "Check \
                that the host runs",
                    )
                },
            ),
        )
        .api_route(
            "/readyz",
            get_with(readiness, |operation| {
                let operation = operation.id("getReadiness").summary(
                    "Check that the host accepts \
                    operations",
                );
                operation.response::<200, String>().response::<503, String>()
            }),
        )
        .api_route(
            "/info",
            get_with(info, |operation| {
                let operation = operation.id("getInfo").summary("Say which host this is");
                operation.description(
                    "`storeId` is made once with the data directory; a copy and a restored backup \
                     have the same one.",
                )
            }),
        )
        .api_route(
            "/openapi.json",
            get_with(document, |operation| {
                let operation = operation.id("getOpenapi").summary("Read this document");
                let operation = operation.description(
                    "It has an entity tag; 304 answers \
                    `If-None-Match`.",
                );
                operation.response::<200, Json<Value>>().response::<304, ()>()
            }),
        )
        .with_path_items(|item| item.tag("host"))
        .with_path_items(document::plane("host"))
}

/// Which host this is.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct HostInfo {
    /// The program's version.
    version: &'static str,
    /// The id of the data directory.
    store_id: Uuid,
}

async fn info(State(service): State<Arc<Service>>) -> Json<HostInfo> {
    Json(HostInfo { version: env!("CARGO_PKG_VERSION"), store_id: service.monitor().store_id() })
}

async fn document(headers: HeaderMap) -> Response {
    // The first caller has it rendered.
    off_executor(usize::MAX, || DOCUMENT.answer(&headers))
}

/// The document as a page for people. It is rendered once and needs no token.
async fn reference() -> Response {
    const POLICY: &str = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action \
                          'none'; frame-ancestors 'none'";
    static PAGE: LazyLock<String> =
        LazyLock::new(|| reference_page(&DOCUMENT.value, "reference.css").into_string());
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "public, max-age=300"),
    ];
    (headers, off_executor(usize::MAX, || PAGE.as_str())).into_response()
}

async fn reference_style() -> Response {
    (
        [(CONTENT_TYPE, "text/css; charset=utf-8"), (CACHE_CONTROL, "public, max-age=300")],
        REFERENCE_STYLE,
    )
        .into_response()
}

/// Every route.
pub fn router(service: Arc<Service>, token: AdminToken, options: &ServerOptions) -> Router {
    let bodies = Bodies::new(options.connections.max_bodies_bytes);
    router_of(Surfaces::All, service, token, options, &bodies)
}

/// The routes of some surfaces.
pub(super) fn router_of(
    surfaces: Surfaces,
    service: Arc<Service>,
    token: AdminToken,
    options: &ServerOptions,
    bodies: &Bodies,
) -> Router {
    let (planes, open) =
        document::undocumented(|| (Router::from(behind_the_token(surfaces)), Router::from(open())));
    // Whatever surfaces there are: the pages of people write, too.
    memhost_integrations::attach(&service, &options.integrations);
    let integrations = match surfaces {
        Surfaces::Control => Router::new(),
        _ => memhost_integrations::routes(&options.integrations),
    };
    let mut planes = planes.merge(integrations);
    if surfaces != Surfaces::Control {
        planes = planes.merge(mcp::routes(&service));
    }
    let guard =
        Guard { admin: token.clone(), service: Arc::clone(&service), bodies: bodies.clone() };
    let mut surface = planes.layer(from_fn_with_state(Arc::new(guard), guarded)).merge(open);
    if surfaces != Surfaces::Control {
        surface = surface.merge(mcp::without_oauth());
    }
    if surfaces != Surfaces::Runtime {
        surface = surface
            .route("/reference", get(reference))
            .route("/reference.css", get(reference_style))
            .merge(memhost_explorer::routes(
                &service,
                token,
                options.links.clone(),
                options.integrations.pagespace.clone(),
                &options.frame_ancestors,
                |pages| pages.route_layer(from_fn_with_state(bodies.clone(), bodies::bound)),
            ));
    }
    surface
        .fallback(|request: Request| async move {
            let detail = format!(
                "there is nothing at {}; `/openapi.json` lists the routes of the API",
                request.uri().path()
            );
            Problem::new(ProblemCode::NoRoute, detail)
        })
        .method_not_allowed_fallback(|request: Request| async move {
            let (path, method) = (request.uri().path(), request.method());
            let detail =
                format!("{path} does not take {method}; the header `allow` names what it takes");
            Problem::new(ProblemCode::MethodNotAllowed, detail)
        })
        // One layer, because axum clones everything below a layer for each request.
        .layer((from_fn(front), DefaultBodyLimit::max(MAX_BODY_BYTES)))
        .with_state(service)
}

/// Metrics for Prometheus, which needs an operator's token: they show the usage of every company.
async fn metrics(allowed: HostAuthorized<permission::Monitor>) -> Result<Metrics, Problem> {
    Ok(Metrics(allowed.service.monitor().metrics().await?))
}

struct Metrics(String);

impl IntoResponse for Metrics {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], self.0)
            .into_response()
    }
}

impl OperationOutput for Metrics {
    type Inner = String;

    fn inferred_responses(_: &mut GenContext, _: &mut Operation) -> Responses {
        media_answer("application/openmetrics-text", "One metric a line.")
    }
}

/// Readiness for load balancers: whether the host accepts operations.
async fn readiness(State(service): State<Arc<Service>>) -> Response {
    let check = service.monitor().readiness().await;
    match check.health {
        Health::Ok => "ready\n".into_response(),
        Health::Warning => {
            format!("ready, with little {}: only reads are answered\n", check.name).into_response()
        }
        // The caller has no token, so the details are only in the log.
        Health::Error => {
            tracing::error!(found = check.found, advice = check.advice, "the host is not ready");
            let text = format!("{} is not ready\n", check.name);
            (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], text).into_response()
        }
    }
}

/// Stands in front of the API, the integrations' routes and `/mcp`.
struct Guard {
    admin: AdminToken,
    service: Arc<Service>,
    bodies: Bodies,
}

/// Requires a token, bounds the memory of the request, processes a repeated idempotency key once,
/// and finishes the request even if its client disconnects.
async fn guarded(State(guard): State<Arc<Guard>>, mut request: Request, next: Next) -> Response {
    match caller_of(&guard.admin, &guard.service, request.headers()).await {
        Ok(caller) => drop(request.extensions_mut().insert(caller)),
        Err(refused) => return *refused,
    }
    let work = RequestWork::of(&request);
    work.run(async move {
        let (request, counted) = guard.bodies.count(request);
        counted.answer(idempotency(&guard.service, request, next).await)
    })
    .await
}

/// Stands in front of everything: sets the id of every request and its answer, so that a caller's
/// log can be compared with the host's, and compresses.
pub(super) async fn front(mut request: Request, next: Next) -> Response {
    let given = request.headers().get(&REQUEST_ID).filter(|value| {
        (1..=64).contains(&value.len())
            && value.to_str().is_ok_and(|text| text.chars().all(|c| c.is_ascii_graphic()))
    });
    let id = given.cloned().unwrap_or_else(made_id);
    // For the routes of integrations, and for `/mcp`.
    if !request.uri().path().starts_with("/runtime/") {
        let extensions = request.extensions_mut();
        extensions.insert(memhost_integrations::READ_ROUTES);
        extensions.insert(memhost_integrations::TOOLS);
    }
    let span = tracing::info_span!(
        "request",
        id = id.to_str().unwrap_or("-"),
        method = %request.method(),
        path = request.uri().path(),
    );
    // Whoever stands before the host may have read another one of them.
    let twice = ["host", "authorization", "idempotency-key"]
        .into_iter()
        .find(|name| request.headers().get_all(*name).iter().nth(1).is_some());
    let work = async move {
        if let Some(name) = twice {
            return Problem::invalid(format!("the header `{name}` is sent twice; send it once"))
                .into_response();
        }
        match takes_gzip(request.headers()) {
            true => Box::pin(compressed(request, next)).await,
            false => uncompressed(request, next).await,
        }
    };
    let mut response = work.instrument(span.clone()).await;
    tracing::debug!(parent: &span, status = response.status().as_u16(), "answered");
    response.headers_mut().insert(REQUEST_ID.clone(), id);
    response
}

async fn answered(request: Request, next: Next) -> Response {
    bodies::in_parts(memhost_explorer::missing(request, next).await)
}

/// Which answers are compressed. Compression would hold back the events of a stream.
fn compressible() -> impl Predicate {
    SizeAbove::new(MIN_COMPRESSED).and(NotForContentType::SSE).and(NotForContentType::IMAGES)
}

/// Whether a client accepts gzip. A client that accepts no encoding at all gets an uncompressed
/// answer, as RFC 9110 allows: tower-http would answer 406 after the request was processed.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let all = headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(',')).any(|part| {
        let mut parts = part.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let is_gzip = name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip");
        let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok());
        is_gzip && weight.is_none_or(|weight| weight > 0.0)
    })
}

/// Answers without compression, and says that other clients may get another answer.
async fn uncompressed(request: Request, next: Next) -> Response {
    let mut response = answered(request, next).await;
    if compressible().should_compress(&response) {
        response.headers_mut().append(VARY, ACCEPT_ENCODING.into());
    }
    response
}

/// Compresses the answer.
async fn compressed(mut request: Request, next: Next) -> Response {
    request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    let answer = service_fn(move |request| {
        let next = next.clone();
        async move { Ok::<_, Infallible>(answered(request, next).await) }
    });
    let compression = CompressionLayer::new().compress_when(compressible()).layer(answer);
    match compression.oneshot(request).await {
        Ok(response) => response.map(Body::new),
        Err(never) => match never {},
    }
}

fn made_id() -> HeaderValue {
    let mut text = Uuid::encode_buffer();
    let text = Uuid::now_v7().hyphenated().encode_lower(&mut text);
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static("-"))
}
