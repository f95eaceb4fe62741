//! The same routes without a network: for commands that open a data directory themselves.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use tower::ServiceExt;

use super::ServerOptions;
use super::routes::router;
use memhost_core::Service;
use memhost_http::AdminToken;

/// What a request does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    #[default]
    Get,
    /// Does something.
    Post,
    /// Sets something.
    Put,
    /// Changes a part of something.
    Patch,
    /// Takes something away.
    Delete,
}

/// A request.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// What it does.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// JSON.
    pub body: Option<String>,
    /// Names, in lower case, and values. An `authorization` takes the place of the operator's, a `content-type` that of
    /// JSON.
    pub headers: Vec<(&'static str, String)>,
}

/// A host without a network. Whoever can open its data directory is its operator: it asks for no token of theirs.
pub struct InProcess {
    router: Router,
    token: String,
}

impl InProcess {
    /// In front of an open host.
    pub fn new(service: Arc<Service>) -> Self {
        Self::with(service, &ServerOptions::default())
    }

    /// The same with its surfaces set up.
    pub fn with(service: Arc<Service>, options: &ServerOptions) -> Self {
        let token = uuid::Uuid::new_v4().to_string();
        Self { router: router(service, AdminToken::of(&token), options), token }
    }

    /// Answers with a status and a body.
    pub async fn call(&self, request: Request) -> (u16, Vec<u8>) {
        let (parts, body) = self.respond(request).await.into_parts();
        (parts.status.as_u16(), body)
    }

    /// Answers with everything.
    pub async fn respond(&self, request: Request) -> http::Response<Vec<u8>> {
        let method = match request.method {
            Method::Get => http::Method::GET,
            Method::Post => http::Method::POST,
            Method::Put => http::Method::PUT,
            Method::Patch => http::Method::PATCH,
            Method::Delete => http::Method::DELETE,
        };
        let mut built = http::Request::builder().method(method).uri(&request.path);
        if !request.headers.iter().any(|(name, _)| *name == "authorization") {
            built = built.header("authorization", format!("Bearer {}", self.token));
        }
        for (name, value) in &request.headers {
            built = built.header(*name, value);
        }
        if !request.headers.iter().any(|(name, _)| *name == "content-type") {
            built = built.header("content-type", "application/json");
        }
        let built = built.body(Body::from(request.body.unwrap_or_default()));
        let wrong = |status, text: &str| {
            let mut response = http::Response::new(text.as_bytes().to_vec());
            *response.status_mut() = status;
            response
        };
        let Ok(request) = built else { return wrong(http::StatusCode::BAD_REQUEST, "the request is none") };
        match self.router.clone().oneshot(request).await {
            Ok(response) => {
                let (parts, body) = response.into_parts();
                match to_bytes(body, usize::MAX).await {
                    Ok(bytes) => http::Response::from_parts(parts, bytes.to_vec()),
                    Err(error) => wrong(http::StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
                }
            }
            Err(never) => match never {},
        }
    }
}
