//! The HTTP surfaces of a host: the runtime and the control plane, MCP, and what every surface shares (authentication,
//! authorization, idempotency, problem details). The one place that knows which error is which status.

mod allowed;
mod answer;
pub mod api;
mod auth;
pub mod document;
mod ending;
mod extract;
mod idempotency;
pub mod mcp;
mod part;
mod problem;

pub use allowed::{
    Administering, Authenticated, Authorized, Browsing, Capturing, Correcting, Doing, Emitting, Erasing, Forgetting, Granting,
    Host, Hosting, Listing, Querying, Reading, Resolving, Viewing, Writing,
};
pub use answer::{Created, Events, JsonLines, NoContent, WithRateLimit};
pub use auth::{AdminToken, AuthError};
pub use auth::{caller_of, require};
pub use ending::detach_from_client;
pub use extract::{Body, Company, Lines, Query, parse, read_json};
pub use idempotency::once;
pub use part::{PathParam, SecretName};
pub use problem::{CODES, Code, Problem};

/// The largest body, in bytes. A record of 1 MiB whose every byte is escaped in JSON fits.
pub const MAX_BODY_BYTES: usize = 8 << 20;
