//! Why a registry did not give or take a provider.

use memhost_types::Digest;

/// Why a registry did not give or take a provider.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum OciError {
    #[error("`{text}` names no provider in a registry: {why}; write oci://HOST/NAME:TAG")]
    Reference { text: String, why: &'static str },
    #[error("{url} cannot be reached: {message}; check the name, the network and the proxy")]
    Unreachable { url: String, message: String },
    #[error(
        "{registry} has no {what}; check the name and the tag (a registry may also say this of \
         what it hides: then log in with `docker login {registry}`)"
    )]
    NotFound { registry: String, what: String },
    #[error(
        "{registry} does not let this user do that ({status}): {said}; log in with `docker login \
         {registry}`, or set DOCKER_AUTH_CONFIG to the JSON that it writes"
    )]
    Denied { registry: String, status: u16, said: String },
    #[error(
        "{registry} sends its users to {realm} for tokens, and the password for {registry} is not \
         sent to another domain; if you trust it, log in there: `docker login {realm}`"
    )]
    OtherRealm { registry: String, realm: String },
    #[error(
        "{url} would be asked without TLS; use https there, or --allow-plain-http if the \
             network is yours"
    )]
    Plain { url: String },
    #[error("{url} answered {status}: {said}; try again later, or ask who runs the registry")]
    Status { url: String, status: u16, said: String },
    #[error("{what} is larger than {max} bytes, which is the most that is read; do not use it")]
    TooLarge { what: String, max: u64 },
    #[error(
        "{what} has the digest {found} and should have {expected}: it was changed on the way or in \
         the registry; do not use it"
    )]
    Changed { what: String, expected: Digest, found: Digest },
    #[error("{what} cannot be read: {why}; have it pushed again, or name another tag")]
    Malformed { what: String, why: String },
    #[error(
        "the credentials for {host} cannot be read: {why}; log in again with `docker login \
             {host}`"
    )]
    Credentials { host: String, why: String },
}

impl OciError {
    pub(crate) fn malformed(what: impl Into<String>, why: impl std::fmt::Display) -> Self {
        Self::Malformed { what: what.into(), why: why.to_string() }
    }
}
