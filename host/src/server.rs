//! The host as a server: all surfaces in one router, and the addresses that it listens on.

mod in_process;
mod listen;
mod openapi;
mod routes;

pub use self::in_process::{InProcess, Method, Request};
pub use self::listen::{ServeError, bind, run};
pub use self::openapi::openapi;
pub use self::routes::router;
pub use crate::edge::{AdminToken, AuthError};
