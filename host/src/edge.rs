//! What every HTTP surface shares: who calls and whether that one may, what comes in, idempotency, and errors as problem
//! details. The one place that knows which error is which status.

mod allowed;
mod auth;
mod extract;
mod idempotency;
mod problem;

pub(crate) use allowed::{Administering, By, Emitting, Erasing, Granting, Host, Hosting, In, Resolving, Viewing};
pub use auth::{AdminToken, AuthError};
pub(crate) use auth::{caller_of, require};
pub(crate) use extract::{Body, Company, Query, parse};
pub(crate) use idempotency::once;
pub(crate) use problem::Problem;

/// The largest body, in bytes. A record of 1 MiB whose every byte is escaped in JSON fits.
pub(crate) const MAX_BODY_BYTES: usize = 8 << 20;
