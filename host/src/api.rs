//! HTTP: the runtime plane (`/runtime/v1`, memory traffic) and the control plane (`/control/v1`, bindings, operation
//! log, plugins). Turns a request into one call of `service`, and its answer or error back.

mod allowed;
mod auth;
mod binding;
mod company;
mod control;
mod event;
mod extract;
mod hook;
mod idempotency;
mod in_process;
mod job;
mod money;
mod problem;
mod review;
mod runtime;
mod server;
mod token;

pub use auth::{AdminToken, AuthError};
pub use in_process::{InProcess, Method, Request};
pub use server::{ServeError, bind, router, run};
