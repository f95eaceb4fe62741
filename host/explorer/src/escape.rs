//! Values in addresses.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters that are not escaped.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A value as it is written in a path or a query.
pub(crate) fn escape(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// The query of an address, with its `?`; empty where no value is given.
pub(crate) fn query<'a>(pairs: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let given = pairs.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let given: Vec<_> =
        given.map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect();
    if given.is_empty() { String::new() } else { format!("?{}", given.join("&")) }
}
