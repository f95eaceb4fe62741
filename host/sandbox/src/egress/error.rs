//! Why a request did not go out, or its answer did not come back.

use tokio::task::JoinError;
use wasmtime_wasi_http::Error as Wasi;

use super::address::AddressError;
use super::secret::SecretError;
use memhost_types::OriginError;

/// The phase of a request when its time was up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// There was no connection yet.
    Connecting,
    /// The request was sent, and no answer had begun.
    Response,
    /// A part of a body was waited for.
    Body,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Connecting => "connecting",
            Self::Response => "the server's answer",
            Self::Body => "the next part of a body",
        })
    }
}

/// For the operator; the guest gets less, see [`EgressError::for_guest`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum EgressError {
    #[error("the request has no sound target: {0}")]
    Target(#[from] OriginError),
    #[error(
        "`{target}` is not granted; an operator types `memhost binding grant NAME --http ORIGIN`"
    )]
    NotGranted { target: String },
    #[error(
        "the host is quiet, because its data directory was restored from a backup; `memhost serve \
         --end-quiet` ends that"
    )]
    Quiet,
    #[error(
        "the method {method} is not granted for `{target}`; an operator types `memhost binding \
         grant NAME --http ORIGIN --method {method}`"
    )]
    Method { target: String, method: String },
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(
        "the limit `{name}` of {most} is reached; an operator can raise it: `memhost binding \
         update --limits`"
    )]
    Limit { name: &'static str, most: u64 },
    #[error(
        "the name {name:?} could not be resolved: {message}; check its spelling and this machine's \
         DNS"
    )]
    Resolve { name: String, message: String },
    #[error(
        "connecting to {target} failed: {message}; check that the server listens and is reached \
         from here"
    )]
    Connect { target: String, message: String },
    #[error(
        "the TLS connection to {target} failed: {message}; a private certificate authority is \
         named with `--outgoing-roots`"
    )]
    Tls { target: String, message: String },
    #[error(
        "{phase} took longer than {ms} ms; look at the server, or raise the limit `callTimeoutMs`"
    )]
    TimedOut { phase: Phase, ms: u128 },
    #[error(
        "the exchange with the server broke: {0}; try again, and look at the server if it goes on"
    )]
    Exchange(String),
    #[error("{0:?} cannot be sent in a request; the provider must give it in printable characters")]
    Header(String),
    #[error(
        "the answer is encoded as {0:?}, although only gzip was asked for; secrets could hide in \
         it; use a server that heeds `accept-encoding`"
    )]
    Encoded(String),
    #[error("the host stopped while it worked on the request; send it again")]
    Interrupted,
    #[error("the call ended before its request did; the provider must wait for the answer")]
    Ended,
}

impl From<JoinError> for EgressError {
    fn from(_: JoinError) -> Self {
        Self::Interrupted
    }
}

impl EgressError {
    pub(super) fn limit(name: &'static str, most: u64) -> Self {
        Self::Limit { name, most }
    }

    /// The error for the guest. It contains nothing about the network behind the host.
    pub(super) fn for_guest(&self) -> Wasi {
        match self {
            Self::Target(_) => Wasi::HttpRequestUriInvalid,
            Self::NotGranted { .. } | Self::Quiet | Self::Ended | Self::Interrupted => {
                Wasi::HttpRequestDenied
            }
            Self::Method { .. } => Wasi::HttpRequestMethodInvalid,
            Self::Address(AddressError::None { .. }) | Self::Resolve { .. } => {
                Wasi::DnsError { rcode: None, info_code: None }
            }
            Self::Address(_) => Wasi::DestinationIpProhibited,
            // They name what the guest itself wrote, and the limits are its own.
            Self::Secret(_) | Self::Limit { .. } => Wasi::InternalError(Some(self.to_string())),
            Self::Connect { .. } => Wasi::ConnectionRefused,
            Self::Tls { .. } => Wasi::TlsProtocolError,
            // Only before there is a connection is it certain that the server has seen nothing.
            Self::TimedOut { phase: Phase::Connecting, .. } => Wasi::ConnectionTimeout,
            Self::TimedOut { phase: Phase::Response, .. } => Wasi::HttpResponseTimeout,
            Self::TimedOut { phase: Phase::Body, .. } => Wasi::ConnectionReadTimeout,
            Self::Exchange(_) => Wasi::HttpProtocolError,
            Self::Header(name) => {
                Wasi::HttpRequestHeaderSize { field_name: Some(name.clone()), field_size: None }
            }
            // The server wrote it: it may be a secret that it repeats.
            Self::Encoded(_) => Wasi::HttpResponseContentCoding(None),
        }
    }
}
