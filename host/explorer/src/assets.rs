//! The stylesheet, script and icon. They are compiled in, and their addresses have a digest, so
//! browsers cache them forever.

use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use memhost_http::{Problem, ProblemCode};

/// Names, media types and contents.
const ASSETS: [(&str, &str, &str); 3] = [
    ("explorer.css", "text/css; charset=utf-8", include_str!("assets/explorer.css")),
    ("explorer.js", "text/javascript; charset=utf-8", include_str!("assets/explorer.js")),
    ("icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
];

static ADDRESSES: LazyLock<Vec<(&str, String)>> = LazyLock::new(|| {
    let address = |name: &str, text: &str| {
        format!("/assets/{name}?v={}", &blake3::hash(text.as_bytes()).to_hex()[..12])
    };
    ASSETS.iter().map(|(name, _, text)| (*name, address(name, text))).collect()
});

/// The address of an asset. It changes with the content.
pub(super) fn address(name: &str) -> &'static str {
    ADDRESSES
        .iter()
        .find(|(known, _)| *known == name)
        .map_or("/assets/none", |(_, address)| address)
}

pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/assets/{name}", get(asset))
}

async fn asset(Path(name): Path<String>) -> Response {
    match ASSETS.iter().find(|(known, _, _)| *known == name) {
        Some((_, media, text)) => (
            [(CONTENT_TYPE, *media), (CACHE_CONTROL, "public, max-age=31536000, immutable")],
            *text,
        )
            .into_response(),
        None => {
            Problem::new(ProblemCode::NoRoute, format!("there is no asset {name}")).into_response()
        }
    }
}
