//! Why a text is not an origin.

/// Why a text is not an origin or an authority. At most the first 100 characters of the text are
/// shown, user info never.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum OriginError {
    #[error("`{0}` has no scheme; write an origin as `https://host` or `https://host:port`")]
    NoScheme(String),
    #[error("the scheme `{0}` is not allowed; use `https` or `http`")]
    Scheme(String),
    #[error("`{0}` has user info before its host; leave it out and send credentials in a header")]
    UserInfo(String),
    #[error("`{text}` has a {part}; an origin is only a scheme, a host and a port, so remove it")]
    Rest { text: String, part: &'static str },
    #[error(
        "the port `{0}` is not a number from 1 to 65535; correct it, or leave it and its colon out"
    )]
    Port(String),
    #[error("the host `{0}` is longer than 253 bytes; give a name that DNS can hold")]
    HostTooLong(String),
    #[error("a label of the host `{0}` is longer than 63 bytes; give a name that DNS can hold")]
    LabelTooLong(String),
    #[error(
        "the host `{0}` is empty or has an empty label; give a name without two dots in a row or a \
         dot in front"
    )]
    EmptyLabel(String),
    #[error("the host `{0}` is not ASCII; write its punycode form, which begins with `xn--`")]
    NotAscii(String),
    #[error(
        "the host `{host}` has the character {character:?}; use letters, digits, `-`, `_` and dots \
         only"
    )]
    Character { host: String, character: char },
    #[error(
        "the host `{0}` ends in a number but is no IPv4 address; write four decimal numbers, such \
         as `192.0.2.7`"
    )]
    Ipv4(String),
    #[error(
        "the host `{0}` is no IPv6 address in brackets; write it like `[2001:db8::1]`, without a \
         zone"
    )]
    Ipv6(String),
    #[error(
        "`{0}` has a placeholder that is not `{{{{config:/pointer}}}}`, with a JSON Pointer and no \
         other braces"
    )]
    Placeholder(String),
    #[error(
        "the wildcard `{0}` is too wide; write at least two labels after it, such as \
         `*.example.com`"
    )]
    Wildcard(String),
}

// What is before an `@` may be a password, even in a text that is no URL at all.
pub(super) fn shown(text: &str) -> String {
    let (hidden, text) = text.rsplit_once('@').map_or(("", text), |(_, rest)| ("…@", rest));
    hidden.chars().chain(text.chars()).take(100).flat_map(char::escape_debug).collect()
}
