//! The same routes without a network, for commands that open a data directory themselves.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use tower::ServiceExt;

use super::ServerOptions;
use super::routes::router;
use memhost_core::Service;
use memhost_http::AdminToken;

/// The method of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Method {
    /// `GET`.
    #[default]
    Get,
    /// `POST`.
    Post,
    /// `PUT`.
    Put,
    /// `PATCH`.
    Patch,
    /// `DELETE`.
    Delete,
}

/// A request.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// JSON.
    pub body: Option<String>,
    /// Names, in lower case, and values. Without `authorization` the operator calls; without
    /// `content-type` the body is JSON.
    pub headers: Vec<(&'static str, String)>,
}

/// A host without a network. A process that can open the data directory is its operator, so it
/// needs no token.
pub struct InProcess {
    router: Router,
    token: String,
}

impl InProcess {
    /// The routes of an open host, with default options.
    pub fn new(service: Arc<Service>) -> Self {
        Self::with(service, &ServerOptions::default())
    }

    /// The routes of an open host.
    pub fn with(service: Arc<Service>, options: &ServerOptions) -> Self {
        let token = uuid::Uuid::new_v4().to_string();
        Self { router: router(service, AdminToken::of(&token), options), token }
    }

    /// Answers with a status and a body.
    pub async fn call(&self, request: Request) -> (u16, Vec<u8>) {
        let (parts, body) = self.respond(request).await.into_parts();
        (parts.status.as_u16(), body)
    }

    /// Answers with everything. An answer that has no end, such as a stream of events, is for
    /// [`Self::stream`].
    pub async fn respond(&self, request: Request) -> http::Response<Vec<u8>> {
        let (parts, body) = self.stream(request).await.into_parts();
        match to_bytes(body, usize::MAX).await {
            Ok(bytes) => http::Response::from_parts(parts, bytes.to_vec()),
            Err(error) => {
                failed(http::StatusCode::INTERNAL_SERVER_ERROR, error.to_string().into_bytes())
            }
        }
    }

    /// Answers with a body that is read as it comes.
    pub async fn stream(&self, request: Request) -> http::Response<Body> {
        let method = match request.method {
            Method::Get => http::Method::GET,
            Method::Post => http::Method::POST,
            Method::Put => http::Method::PUT,
            Method::Patch => http::Method::PATCH,
            Method::Delete => http::Method::DELETE,
        };
        let mut built = http::Request::builder().method(method).uri(&request.path);
        let is_set = |header: &str| request.headers.iter().any(|(name, _)| *name == header);
        if !is_set("authorization") {
            built = built.header("authorization", format!("Bearer {}", self.token));
        }
        if !is_set("content-type") {
            built = built.header("content-type", "application/json");
        }
        for (name, value) in &request.headers {
            built = built.header(*name, value);
        }
        match built.body(Body::from(request.body.unwrap_or_default())) {
            Ok(request) => {
                self.router.clone().oneshot(request).await.unwrap_or_else(|never| match never {})
            }
            Err(error) => failed(
                http::StatusCode::BAD_REQUEST,
                Body::from(format!("the request is invalid: {error}")),
            ),
        }
    }
}

fn failed<T>(status: http::StatusCode, body: T) -> http::Response<T> {
    let mut response = http::Response::new(body);
    *response.status_mut() = status;
    response
}
