//! What can go wrong with a request, told by what the server may have done.

use std::time::Duration;

use serde_json::Value;

use super::Response;
use crate::types::{self, RetryLater};

/// The most of a server's message that is kept, in characters.
const MESSAGE: usize = 300;

/// Where a request was when it took too long or broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The request was being sent, or the server had not answered.
    Response,
    /// The server had begun to answer.
    Body,
}

/// Why there is no answer, as the host says it. Tests give it to
/// [`serve`](crate::testing::http::serve).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The host did not let it out.
    Denied(String),
    /// There was no connection.
    NotSent(String),
    /// The exchange broke or took too long.
    MaybeSent(Phase, String),
    /// A limit of the binding was reached.
    Limit(String),
}

/// Why a request has no answer that can be used. `request` is its method and path.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// The host did not let it out: no grant for the origin or the method, an address that is not
    /// public, a secret that is not there or not for this place.
    #[error(
        "{request} was denied: {reason}; `memhost binding show` has what is granted, the \
         operation's log the reason"
    )]
    Denied {
        /// The request.
        request: String,
        /// The host's message.
        reason: String,
    },
    /// There was no connection: the server has not seen it.
    #[error(
        "{request} was not sent: {reason}; check the address in the configuration, and that the \
         server runs"
    )]
    NotSent {
        /// The request.
        request: String,
        /// The host's message.
        reason: String,
    },
    /// It was on its way, and no whole answer came: the server may have done it.
    #[error("{request} may have been done: {reason}")]
    MaybeSent {
        /// The request.
        request: String,
        /// How far it had come.
        phase: Phase,
        /// The host's message.
        reason: String,
    },
    /// The server answered with an error, or with a redirect.
    #[error("{request} was answered with the status {status}: {message}")]
    Status {
        /// The request.
        request: String,
        /// The status.
        status: u16,
        /// The server's message, at most 300 characters.
        message: String,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
    },
    /// A limit of the binding was reached.
    #[error("{request} reached a limit: {reason}")]
    Limit {
        /// The request.
        request: String,
        /// The host's message.
        reason: String,
    },
    /// The answer is not what this server answers. What was asked has probably been done.
    #[error("{request} was answered with something else than expected: {reason}")]
    Answer {
        /// The request.
        request: String,
        /// The mismatch.
        reason: String,
    },
    /// What is none of HTTP: of storage, or of the directory of a
    /// [`Service`](crate::remote::Service) whose records are files.
    #[error("{0}")]
    Other(types::Error),
}

impl Error {
    /// An answer that is not what this service answers to a request, such as `POST /notes`.
    pub fn unexpected(request: &str, reason: &str) -> Self {
        Self::Answer { request: request.to_owned(), reason: reason.to_owned() }
    }

    pub(super) fn failed(request: String, failure: Failure) -> Self {
        match failure {
            Failure::Denied(reason) => Self::Denied { request, reason },
            Failure::NotSent(reason) => Self::NotSent { request, reason },
            Failure::MaybeSent(phase, reason) => Self::MaybeSent { request, phase, reason },
            Failure::Limit(reason) => Self::Limit { request, reason },
        }
    }

    pub(super) fn status(response: &Response) -> Self {
        let after = response.header("retry-after").map(str::trim);
        Self::Status {
            request: response.request.clone(),
            status: response.status,
            message: message(&response.body),
            // A date is rare, and the clock of a provider may be coarse: a minute is never far from
            // it.
            retry_after: after.map(|after| Duration::from_secs(after.parse().unwrap_or(60))),
        }
    }

    /// Whether the server may have done what was asked. If not, it can be sent again.
    pub fn may_have_acted(&self) -> bool {
        match self {
            // Refused by the provider itself.
            Self::Other(types::Error::Unsupported(_) | types::Error::InvalidRequest(_)) => false,
            Self::MaybeSent { .. } | Self::Answer { .. } | Self::Other(_) => true,
            Self::Status { status, .. } => *status >= 500,
            Self::Denied { .. } | Self::NotSent { .. } | Self::Limit { .. } => false,
        }
    }

    /// The error of a request that follows a write which was done, such as reading it back.
    /// [`Error::may_have_acted`] is true of it, so the write is looked for and not repeated.
    #[must_use]
    pub fn after_write(self) -> Self {
        if self.may_have_acted() {
            return self;
        }
        Self::Other(match types::Error::from(self) {
            // They say that nothing was done.
            types::Error::Unsupported(message) => types::Error::Internal(message),
            types::Error::InvalidRequest(error) => types::Error::Internal(error.message),
            error => error,
        })
    }

    /// How long to wait before a request that reads is sent again. `None` if that would not help.
    pub(super) fn pause(&self, tried: u32) -> Option<Duration> {
        let pause = Duration::from_millis(100 << tried.min(6));
        match self {
            Self::NotSent { .. } | Self::MaybeSent { .. } => Some(pause),
            Self::Status { status: 429 | 500 | 502..=504, retry_after, .. } => {
                Some(retry_after.unwrap_or(pause))
            }
            _ => None,
        }
    }
}

impl From<types::Error> for Error {
    fn from(error: types::Error) -> Self {
        Self::Other(error)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Other(error.into())
    }
}

impl From<Error> for types::Error {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let later = |after: Option<Duration>| RetryLater {
            message: message.clone(),
            retry_after_ms: after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX)),
        };
        match &error {
            Error::Denied { .. } => Self::Unauthorized(message),
            Error::NotSent { .. } | Error::MaybeSent { .. } => Self::Unavailable(later(None)),
            // The limits of a minute pass; what one call may send does not.
            Error::Limit { reason, .. }
                if reason.contains("PerMinute") || reason.contains("Connections") =>
            {
                Self::RateLimited(later(None))
            }
            Error::Limit { .. } | Error::Answer { .. } => Self::Internal(message),
            Error::Other(error) => error.clone(),
            Error::Status { status, retry_after, .. } => match status {
                401 | 403 => Self::Unauthorized(message),
                402 | 507 => Self::QuotaExceeded(message),
                404 | 410 => Self::NotFound(message),
                400 | 413 | 414 | 422 => Self::InvalidRequest(types::InvalidRequest {
                    field: None,
                    message: message.clone(),
                }),
                429 => Self::RateLimited(later(*retry_after)),
                408 | 500 | 502..=504 => Self::Unavailable(later(*retry_after)),
                _ => Self::Internal(message),
            },
        }
    }
}

/// The message in an error's body, wherever servers write it.
fn message(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let said = ["detail", "details", "message", "error"].iter().find_map(|name| {
        let said = json.get(name)?;
        said.as_str()
            .or_else(|| said.get("message")?.as_str())
            .map(str::to_owned)
            .or_else(|| Some(said.to_string()))
    });
    said.unwrap_or_else(|| text.trim().to_owned()).chars().take(MESSAGE).collect()
}
