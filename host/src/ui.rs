//! The explorer: pages for a person who looks after memory. Rendered here, readable without a script, and made of the same
//! calls and the same permissions as the API.

mod assets;
mod guard;
mod home;
mod kit;
mod session;
mod sign_in;

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};

use crate::edge::AdminToken;
use crate::service::Service;
pub(crate) use guard::{headers, missing};

/// What all pages share.
pub(crate) struct Explorer {
    admin: AdminToken,
    sessions: session::Sessions,
}

/// Every page.
pub(crate) fn routes(service: &Arc<Service>, admin: AdminToken) -> Router<Arc<Service>> {
    let explorer = Arc::new(Explorer { admin, sessions: session::Sessions::default() });
    let company = Router::new().route("/", get(home::company));
    let behind = Router::new()
        .route("/", get(home::companies))
        .route("/theme", post(sign_in::theme))
        .route("/sign-out", post(sign_in::sign_out))
        .nest("/c/{company}", company)
        .route_layer(from_fn(kit::as_page))
        .route_layer(from_fn_with_state((Arc::clone(&explorer), Arc::clone(service)), guard::require));
    let front = Router::new()
        .route("/sign-in", get(sign_in::page).post(sign_in::sign_in))
        .layer(axum::Extension(explorer))
        .route_layer(from_fn(kit::as_page));
    behind.merge(front).route_layer(from_fn(headers)).merge(assets::routes())
}
