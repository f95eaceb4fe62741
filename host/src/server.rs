//! The host as a server: all surfaces in one router, and the addresses that it listens on.

mod in_process;
mod listen;
mod routes;

pub use self::in_process::{InProcess, Method, Request};
pub use self::listen::{Address, Endpoint, ServeError, run};
pub use self::routes::{Surfaces, router};
pub use crate::edge::{AdminToken, AuthError};
