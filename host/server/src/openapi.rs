//! The OpenAPI document: the descriptions of the routes, and the components that they refer to.

use std::sync::LazyLock;

use aide::openapi::OpenApi;
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::routes::described;
use memhost_http::document;

mod components;
mod schemas;

/// The description of the document.
const DESCRIPTION: &str = "A host that lets a company of AI agents use any memory provider without trusting it.\n\n\
    Two planes: memory traffic is below `/runtime/v1`, governance below `/control/v1`. Every request but those of health \
    and of this document needs a token, `authorization: Bearer …`; `x-roles` names the roles whose tokens will do.\n\n\
    Requests refuse fields and parameters that they do not know; answers leave absent fields out, and get new ones in \
    time: ignore what you do not know. Times are RFC 3339 in UTC, ids from outside 1 to 128 bytes, whole numbers without a fraction.\n\n\
    Whatever fails is answered with a problem (RFC 9457). Its `code` and its `type` stay the same; its `detail` is for \
    people. Lists that have pages answer with `nextCursor` while there is more; a cursor is good for the same list, \
    company and filter only.";

/// Each tag with its description, in the order of the reference page.
const TAGS: &[(&str, &str)] = &[
    ("memory", "What agents do: the plan's seven operations."),
    ("hooks", "Lifecycle events on their way to bindings, and what became of them."),
    ("events", "What sessions and tools did."),
    ("stream", "What happens, as it happens."),
    ("bindings", "Which provider answers for a company or an agent, what it may reach, and how it is used."),
    ("secrets", "What providers use and never see."),
    ("operations", "The record of everything that was asked of memory."),
    ("jobs", "What captures left to be done."),
    ("reviews", "What waits for a person before it counts."),
    ("costs", "What memory costs, how much may be spent, and how good it is."),
    ("activity", "Every change of a company's memory, by whom, before and after."),
    ("tokens", "Who may call, and as whom."),
    ("companies", "A company as a whole."),
    ("plugins", "The providers of this host."),
    ("host", "The host itself."),
];

struct Document {
    value: Value,
    text: String,
    tag: HeaderValue,
}

static DOCUMENT: LazyLock<Document> = LazyLock::new(|| {
    let value = build();
    let text = value.to_string();
    let tag = format!("\"{}\"", &blake3::hash(text.as_bytes()).to_hex()[..32]);
    Document { value, text, tag: HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\"")) }
});

/// The OpenAPI 3.1 document of every route. It is the same for all hosts of one build.
pub fn openapi() -> Value {
    DOCUMENT.value.clone()
}

fn build() -> Value {
    let api = document::documented(|| {
        let mut api = OpenApi::default();
        drop(described().finish_api(&mut api));
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
    document["servers"] = json!([{ "url": "/", "description": "The host that serves this document." }]);
    document["tags"] = TAGS.iter().map(|(name, text)| json!({ "name": name, "description": text })).collect();
    components::add(&mut document);
    document
}

/// `GET /openapi.json`. The document has no data of any company, so it needs no token.
pub(super) async fn serve(request: Request) -> Response {
    let Document { text, tag, .. } = &*DOCUMENT;
    let given = request.headers().get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let tag_text = tag.to_str().unwrap_or_default();
    // A cache that compresses marks the tag as weak.
    let is_known =
        given.split(',').map(|one| one.trim().trim_start_matches("W/")).any(|one| one == tag_text || one == "*");
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(CONTENT_TYPE, "application/json")], text.as_str()).into_response()
    };
    response.headers_mut().insert(ETAG, tag.clone());
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    response
}
