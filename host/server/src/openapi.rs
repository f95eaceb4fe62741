//! The OpenAPI document: the descriptions of the routes, and the components that they refer to.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::openapi::OpenApi;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use memhost_core::Service;
use memhost_http::document;

mod components;
mod schemas;

/// The description of the document.
const DESCRIPTION: &str = "A server that gives AI agents one long-term memory per company, \
                           whichever provider stores \
    it.\n\n\
    Memory traffic is below `/runtime/v1`, governance below `/control/v1`. Every request needs a \
    token, \
    `authorization: Bearer …`, except those for health and for this document. `x-roles` names the \
    roles that may send \
    a request.\n\n\
    Requests with unknown fields or parameters are refused. Answers omit absent fields, and later \
    versions add fields: \
    ignore those that you do not know. Times are RFC 3339 in UTC. Ids from outside have 1 to 128 \
    bytes. Whole numbers \
    have no fraction.\n\n\
    Every failure is answered with a problem (RFC 9457). Its `code` and its `type` are stable; its \
    `detail` is for \
    people. A list with pages has a `nextCursor` while there is more. A cursor is valid for the \
    same list, company and \
    filter only.";

/// Each tag with its description, in the order of the reference page.
const TAGS: &[(&str, &str)] = &[
    ("memory", "The operations of agents: write, find, correct and forget records."),
    ("hooks", "Events of hooks, and their deliveries to bindings."),
    ("events", "Events of sessions and tools."),
    ("stream", "Events of the host as server-sent events."),
    (
        "bindings",
        "Which provider answers for a company or an agent, its permissions and its settings.",
    ),
    (
        "secrets",
        "Values that the host inserts into a provider's requests. The provider does not see them.",
    ),
    ("operations", "The record of every operation of memory."),
    ("jobs", "Extraction that a capture left to be done later."),
    ("reviews", "Records and captures that wait for a person's decision."),
    ("costs", "Costs, budgets, and the quality of recall."),
    ("activity", "Every change to a company's memory, with the values before and after."),
    ("tokens", "Who may call, and as whom."),
    ("companies", "A company as a whole."),
    ("plugins", "The providers of this host."),
    ("host", "The host itself."),
];

/// The OpenAPI 3.1 document of every route. It is the same for all hosts of one build.
pub(super) struct Document {
    pub(super) value: Value,
    text: String,
    tag: HeaderValue,
}

fn build(routes: impl FnOnce() -> ApiRouter<Arc<Service>>) -> Value {
    let api = document::documented(|| {
        let mut api = OpenApi::default();
        drop(routes().finish_api(&mut api));
        api
    });
    let mut document = serde_json::to_value(api).unwrap_or_default();
    schemas::merge_requests(&mut document);
    document["info"] = json!({
        "title": "memhost",
        "version": env!("CARGO_PKG_VERSION"),
        "description": DESCRIPTION,
        "license": { "name": "MIT OR Apache-2.0", "identifier": env!("CARGO_PKG_LICENSE") },
    });
    document["servers"] =
        json!([{ "url": "/", "description": "The host that serves this document." }]);
    document["tags"] =
        TAGS.iter().map(|(name, text)| json!({ "name": name, "description": text })).collect();
    components::add(&mut document);
    document
}

impl Document {
    /// The document of these routes.
    pub(super) fn of(routes: impl FnOnce() -> ApiRouter<Arc<Service>>) -> Self {
        let value = build(routes);
        let text = value.to_string();
        let tag = format!("\"{}\"", &blake3::hash(text.as_bytes()).to_hex()[..32]);
        Self {
            value,
            text,
            tag: HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\"")),
        }
    }

    /// `GET /openapi.json`. The document has no data of any company, so it needs no token.
    pub(super) fn answer(&'static self, headers: &HeaderMap) -> Response {
        let given =
            headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
        // A cache that compresses marks the tag as weak.
        let mut given = given.split(',').map(|one| one.trim().trim_start_matches("W/"));
        let mut response = if given.any(|one| one == "*" || self.tag == one) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            ([(CONTENT_TYPE, "application/json")], self.text.as_str()).into_response()
        };
        response.headers_mut().insert(ETAG, self.tag.clone());
        response
            .headers_mut()
            .insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
        response
    }
}
