//! The Model Context Protocol at `/mcp`: memory as tools, resources and a prompt for agents. Turns
//! a call into one call of `core`. Caller and scope come from the token and the client's
//! configuration, never from the model.
//!
//! There are no sessions: every request has its token and its scope. A revoked token is refused at
//! once, and the host keeps no state for clients that disconnect without notice.

mod accept;
mod added;
mod arguments;
mod batch;
mod call;
mod dispatch;
mod error;
mod guard;
mod oauth;
mod offline;
mod params;
mod request_scope;
mod resources;
mod results;
mod rules;
mod schema;
mod server;
mod text;
mod tools;
mod uri;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

pub use self::added::{AddedTool, McpTools, Running};
pub use self::call::{Call, ToolAnswer, Written};
pub use self::error::McpError;
pub(crate) use self::error::names_operation;
pub use self::oauth::without_oauth;
pub use self::offline::offline;
pub use self::request_scope::{RequestScope, client_label};
pub use self::schema::{check_text, of_arguments, of_result, read};
use self::server::MemoryServer;
pub(crate) use self::tools::is_write;
use crate::problem::MAX_BODY_BYTES;
use memhost_core::Service;

/// The route `/mcp`. The router that merges it must put the token layer in front of it, and
/// [`McpTools`] as an extension where crates above add tools.
pub fn routes(service: &Arc<Service>) -> Router<Arc<Service>> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_BODY_BYTES)
        // The host may have any name. `guard` checks the origin of browsers.
        .disable_allowed_hosts();
    let server = MemoryServer::new(Arc::clone(service));
    let protocol = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    // Some clients end every address with a slash.
    let routes = ADDRESSES
        .iter()
        .fold(Router::new(), |routes, address| routes.route_service(address, protocol.clone()));
    routes.layer(from_fn(guard::guard))
}

/// The addresses of the protocol.
const ADDRESSES: [&str; 2] = ["/mcp", "/mcp/"];

/// Whether a path is that of the protocol.
pub(crate) fn is_at(path: &str) -> bool {
    ADDRESSES.contains(&path)
}
