//! The explorer: web pages for operators and administrators. They are rendered on the server, work
//! without a script, and use the same calls and permissions as the API.

mod activity;
mod assets;
mod bindings;
mod browse;
mod companies;
mod components;
mod costs;
mod escape;
mod events;
mod facts;
mod guard;
mod hooks;
mod jobs;
mod link_template;
mod live;
mod operations;
mod outgoing;
mod overview;
mod playground;
mod plugins;
mod records;
mod reference;
mod reviews;
mod session;
mod shown;
mod sign_in;
mod state;
mod tokens;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};

use guard::headers;
pub use guard::missing;
pub use link_template::{LinkTemplate, SourceLinks};
use memhost_core::Service;
use memhost_http::{AdminToken, detach_from_client};
use memhost_integrations::PageSpaceOptions;
use memhost_types::Origin;
pub use reference::{STYLE as REFERENCE_STYLE, page as reference_page};
use state::Explorer;

/// The largest body of a request to sign in: a token, and a path to go on to.
const MAX_SIGN_IN_BYTES: usize = 64 << 10;

/// Every page. Pages of `frame_ancestors` may show them in a frame; with none, nobody may. The
/// company of `pagespace` has a page of its facts. `bound` puts a layer around the pages that need
/// a session, behind the check of the session.
pub fn routes(
    service: &Arc<Service>,
    admin: AdminToken,
    links: SourceLinks,
    pagespace: Option<PageSpaceOptions>,
    frame_ancestors: &[Origin],
    bound: impl FnOnce(Router<Arc<Service>>) -> Router<Arc<Service>>,
) -> Router<Arc<Service>> {
    let policy = guard::policy(frame_ancestors);
    let (messages, sign_in_links) = Default::default();
    let explorer = Arc::new(Explorer { admin, messages, sign_in_links, links, pagespace });
    let company = memory().merge(rules()).merge(token_pages());
    let pages = Router::new()
        .route("/", get(companies::list))
        .route("/theme", post(sign_in::theme))
        .route("/sign-out", post(sign_in::sign_out))
        .merge(host())
        .merge(token_pages())
        .nest("/c/{company}", company);
    // `bound` is inside of the task that goes on when the browser does not wait, as at the API: a
    // form counts until it is answered, whether or not somebody is there for the answer.
    let behind = bound(pages)
        .route_layer(from_fn(detach_from_client))
        .route_layer(from_fn(components::as_page))
        .route_layer(from_fn_with_state(
            (Arc::clone(&explorer), Arc::clone(service)),
            guard::require,
        ));
    let front = Router::new()
        .route("/sign-in", get(sign_in::page).post(sign_in::sign_in))
        .route_layer(from_fn(components::as_page))
        // For programs: what goes wrong is said in JSON.
        .route("/sign-in/link", post(sign_in::make_link))
        // Anybody sends these.
        .layer(DefaultBodyLimit::max(MAX_SIGN_IN_BYTES))
        .layer(axum::Extension(explorer));
    behind.merge(front).route_layer(from_fn_with_state(policy, headers)).merge(assets::routes())
}

/// The pages of a company's memory. A record id may have slashes, so each action on a record has
/// its own prefix.
fn memory() -> Router<Arc<Service>> {
    Router::new()
        .route("/", get(overview::show))
        .route("/operations", get(operations::list))
        .route("/operations/{id}", get(operations::show::show))
        .route("/live", get(live::follow))
        .route("/records", get(records::list::list))
        .route("/records/{binding}/{*record}", get(records::show::show))
        .route("/new-record", get(records::write::new).post(records::write::create))
        .route(
            "/correct/{binding}/{*record}",
            get(records::change::ask_correct).post(records::change::correct),
        )
        .route(
            "/forget/{binding}/{*record}",
            get(records::change::ask_forget).post(records::change::forget),
        )
        .route("/facts", get(facts::list).post(facts::add))
        .route("/facts/delete", post(facts::delete))
        .route("/facts/clear", get(facts::ask_clear).post(facts::clear))
        .route("/query", get(playground::page))
        .route("/browse", get(browse::page))
}

/// The pages of a company's work, configuration, costs and audit.
fn rules() -> Router<Arc<Service>> {
    Router::new()
        .route("/jobs", get(jobs::list))
        .route("/jobs/{id}", get(jobs::show))
        .route("/jobs/{id}/retry", post(jobs::retry))
        .route("/jobs/{id}/cancel", get(jobs::ask_cancel).post(jobs::cancel))
        .route("/reviews", get(reviews::list))
        .route("/reviews/{id}", get(reviews::show).post(reviews::decide))
        .route("/hooks", get(hooks::list))
        .route("/hooks/{id}", get(hooks::show))
        .route("/hooks/{id}/replay", post(hooks::replay))
        .route("/resolve", get(bindings::list::resolve))
        .route("/new-binding", get(bindings::form::new))
        .route("/bindings", get(bindings::list::list).post(bindings::form::create))
        .route("/bindings/{key}", get(bindings::show::show))
        .route("/bindings/{key}/edit", get(bindings::form::edit).post(bindings::form::update))
        .route("/bindings/{key}/switch", post(bindings::change::switch))
        .route("/bindings/{key}/reset", post(bindings::change::reset))
        .route("/bindings/{key}/grants", post(bindings::grants::set))
        .route("/bindings/{key}/default", post(bindings::change::set_default))
        .route("/bindings/{key}/agents", post(bindings::change::set_agent))
        .route(
            "/bindings/{key}/delete",
            get(bindings::change::ask_delete).post(bindings::change::delete),
        )
        .route("/costs", get(costs::sums::list))
        .route("/costs.csv", get(costs::sums::export))
        .route("/outgoing", get(outgoing::list))
        .route("/cost-events", get(costs::events::events))
        .route("/charges", get(costs::events::charges))
        .route("/budgets", get(costs::budgets::list).post(costs::budgets::set))
        .route("/budgets/remove", post(costs::budgets::remove))
        .route("/activity", get(activity::list))
        .route("/events", get(events::list))
}

/// The pages of the host.
fn host() -> Router<Arc<Service>> {
    Router::new()
        .route("/plugins", get(plugins::list))
        .route("/plugins/scan", post(plugins::scan))
        .route("/plugins/{digest}", get(plugins::show))
}

/// The pages of tokens: a company's, or the host's.
fn token_pages() -> Router<Arc<Service>> {
    Router::new()
        .route("/tokens", get(tokens::list).post(tokens::form::create))
        .route("/tokens/new", get(tokens::form::new))
        .route("/tokens/{id}/rotate", get(tokens::ask_rotate).post(tokens::rotate))
        .route("/tokens/{id}/revoke", get(tokens::ask_revoke).post(tokens::revoke))
}
