//! The same routes without a network: for commands that open a data directory themselves.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use tower::ServiceExt;

use super::auth::AdminToken;
use super::server;
use crate::service::Service;

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads.
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
#[derive(Debug, Clone)]
pub struct Request {
    /// What it does.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// JSON.
    pub body: Option<String>,
}

/// A host without a network. Whoever can open its data directory is its operator: it asks for no token of theirs.
pub struct InProcess {
    router: Router,
    token: String,
}

impl InProcess {
    /// In front of an open host.
    pub fn new(service: Arc<Service>) -> Self {
        let token = uuid::Uuid::new_v4().to_string();
        Self { router: server::router(service, AdminToken::of(&token)), token }
    }

    /// Answers with a status and a body.
    pub async fn call(&self, request: Request) -> (u16, Vec<u8>) {
        let method = match request.method {
            Method::Get => http::Method::GET,
            Method::Post => http::Method::POST,
            Method::Put => http::Method::PUT,
            Method::Patch => http::Method::PATCH,
            Method::Delete => http::Method::DELETE,
        };
        let built = http::Request::builder()
            .method(method)
            .uri(&request.path)
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .body(Body::from(request.body.unwrap_or_default()));
        let Ok(request) = built else { return (400, b"the path is no path".to_vec()) };
        match self.router.clone().oneshot(request).await {
            Ok(response) => {
                let status = response.status().as_u16();
                let body = to_bytes(response.into_body(), usize::MAX).await;
                (status, body.map(|bytes| bytes.to_vec()).unwrap_or_default())
            }
            Err(never) => match never {},
        }
    }
}
