//! The HTTP surfaces of a host: the runtime and the control plane, MCP, and what every surface
//! shares (authentication, authorization, idempotency, problem details). The one place that knows
//! which error has which status.

pub mod api;
mod auth;
mod authorize;
mod detach;
pub mod document;
mod extract;
mod failure;
mod idempotency;
pub mod mcp;
mod merge;
mod objects;
mod path;
pub mod permission;
mod problem;
mod rate;
mod reads;
mod response;

pub use auth::{AdminToken, AuthError, authenticate, caller_of, header_text};
pub use authorize::{Authenticated, Authorized, AuthorizedByCore, HostAuthorized};
pub use detach::{HeldUntilDone, RequestWork, detach_from_client, detached_work_ended};
pub(crate) use extract::read_value;
pub use extract::{Body, Company, Ndjson, Query, parse, read_json, read_query};
pub use failure::{Codes, Failure};
pub use idempotency::{idempotency, is_read};
pub use path::{HostId, PathParam, PathSegment, SecretName};
pub use permission::Permission;
pub use problem::{MAX_BODY_BYTES, Problem, ProblemCode, ProblemStatus};
pub use reads::{OnlyRead, ReadRoutes, only_reads};
pub use response::{
    Created, EntityTagged, Json, NdjsonAnswer, NoContent, Responses, ServerSentEvents,
    WithRateLimit, media_answer,
};
