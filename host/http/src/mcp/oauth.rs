//! Where clients look for OAuth after a 401. This host has tokens only; without an answer in the
//! form that they read, clients show that their registration failed instead of why the token was
//! refused.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;

/// What a client shows to its user.
const ADVICE: &str = "this host has no OAuth sign-in: it takes a token in the header \
                      `authorization: Bearer …`, and the request had none that it accepts. Make \
                      one with `memhost token create NAME --role agent --agent NAME`, and put it \
                      into this client's configuration, such as `claude mcp add --transport http \
                      memhost URL/mcp --header \"Authorization: Bearer mh_…\"`";

/// The addresses at which clients look for the documents of an authorization server (RFC 8414 and
/// 9728, OpenID Connect Discovery).
const DOCUMENTS: [&str; 3] =
    ["oauth-protected-resource", "oauth-authorization-server", "openid-configuration"];

/// The routes that say that there is no OAuth. They need no token.
pub fn without_oauth<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let none = || async { refusal(StatusCode::NOT_FOUND, "not_found") };
    let routes = DOCUMENTS.iter().fold(Router::new(), |routes, document| {
        let at = format!("/.well-known/{document}");
        routes.route(&at, get(none)).route(&format!("{at}/{{*resource}}"), get(none))
    });
    // RFC 7591, 3.2.2: the status of every error is 400. Other codes of RFC 6749 make clients try
    // again.
    routes.route("/register", post(|| async { refusal(StatusCode::BAD_REQUEST, "access_denied") }))
}

fn refusal(status: StatusCode, error: &str) -> Response {
    (status, Json(json!({ "error": error, "error_description": ADVICE }))).into_response()
}
