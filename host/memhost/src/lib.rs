//! `memhost` as a library: open a [`Service`] on a data directory and call its operations.

pub use memhost_core::{Caller, OpenError, Service, ServiceError, ServiceOptions};
pub use memhost_server as server;
pub use memhost_types as types;
