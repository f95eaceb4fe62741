//! The options of connections, and how many files the process may open for them.

use serde::Deserialize;

/// How many connections there may be, and how long the host waits for the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConnectionOptions {
    /// Connections at a time, of all addresses that the host listens on: 16 to 1,000,000. The host
    /// uses less where the system lets it open fewer files.
    pub max: usize,
    /// Connections of one IP address, or of one IPv6 network of 64 bits, at a time, from 1. Sockets
    /// in the file system have none. Behind a proxy that is the proxy's address.
    pub max_per_address: usize,
    /// How long the head of a request may take from its first byte, and a new connection until its
    /// first request has come, in milliseconds.
    pub head_timeout_ms: u64,
    /// How long the host waits for the body of a request in all, in milliseconds. For each 16 KiB
    /// that came it waits a second more.
    pub body_timeout_ms: u64,
    /// How long a connection may be open between two requests, in milliseconds.
    pub idle_timeout_ms: u64,
    /// How long the other side may not read what the host writes, in milliseconds.
    pub write_timeout_ms: u64,
    /// What the bodies of all requests in progress may have together, and the answers that are
    /// being sent, in bytes, from 16 MiB. What would be more is refused. See `bodies`.
    pub max_bodies_bytes: usize,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self {
            max: 4_096,
            max_per_address: 1_024,
            head_timeout_ms: 10_000,
            body_timeout_ms: 30_000,
            idle_timeout_ms: 75_000,
            write_timeout_ms: 30_000,
            max_bodies_bytes: 256 << 20,
        }
    }
}

/// Lets the process open as many files as the system allows, and answers how many those are.
pub fn raise_open_files() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let found = getrlimit(Resource::Nofile);
    // Without a hard limit: more than this is of no use to a host.
    let wanted = found.maximum.unwrap_or(1 << 20).min(1 << 20);
    if found.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit { current: Some(wanted), maximum: found.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, "the limit of open files could not be raised");
        }
    }
    open_files()
}

/// How many files the process may open now.
pub(crate) fn open_files() -> u64 {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The options of a process that may open so many files: half of them stay for the store and the
/// providers.
pub(crate) fn within(options: ConnectionOptions, files: u64) -> ConnectionOptions {
    let most = usize::try_from(files / 2).unwrap_or(usize::MAX).max(16);
    if options.max > most {
        tracing::warn!(
            wanted = options.max,
            most,
            "fewer connections than configured: the system allows few open files"
        );
    }
    ConnectionOptions { max: options.max.min(most), ..options }
}
