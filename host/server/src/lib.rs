//! The host as a server: all surfaces in one router, and the addresses that it listens on.

mod bodies;
mod byte_budget;
mod cluster;
mod connections;
mod in_process;
mod listen;
mod openapi;
mod options;
mod routes;
mod starting;

pub use self::cluster::{ClusterOptions, run_cluster};
pub use self::connections::{ConnectionOptions, MAX_HEAD_BYTES, raise_open_files};
pub use self::in_process::{InProcess, Method, Request};
pub use self::listen::{Address, Endpoint, Listening, ServeError, run};
pub use self::options::ServerOptions;
pub use self::routes::{Surfaces, openapi, router};
pub use memhost_http::{AdminToken, AuthError};
