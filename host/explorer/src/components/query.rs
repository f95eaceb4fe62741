//! The query of a page's address, and addresses of the same page with another query.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

use super::view::View;
use crate::escape::query;
use memhost_executor::off_executor;
use memhost_http::Problem;

/// The most fields of a form or an address.
const MAX_FIELDS: usize = 1_024;

/// The query of the address. An empty field counts as absent, because forms send empty fields. An
/// unknown field is an error.
pub(crate) struct QueryParams<T> {
    /// The fields as a type.
    pub(crate) query: T,
    pub(super) pairs: Vec<(String, String)>,
}

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for QueryParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let pairs = fields(parts.uri.query().unwrap_or_default())?;
        Ok(Self { query: memhost_http::read_query(&join(&pairs))?, pairs })
    }
}

/// Names and values of a query or a form that somebody sent, without empty ones.
///
/// # Errors
/// Where there are more than any page has: each field takes many times its own memory, and the
/// sign-in takes a form from anybody.
pub(super) fn fields(text: &str) -> Result<Vec<(String, String)>, Problem> {
    if text.bytes().filter(|byte| *byte == b'&').count() >= MAX_FIELDS {
        return Err(Problem::invalid(format!("there are more than {MAX_FIELDS} fields")));
    }
    Ok(off_executor(text.len(), || pairs(text)))
}

/// Names and values of a query or a form, without empty ones.
fn pairs(text: &str) -> Vec<(String, String)> {
    let decode =
        |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (decode(name), decode(value)))
        .filter(|(_, value)| !value.trim().is_empty())
        .collect()
}

/// As they stand in a query or a form.
pub(super) fn join(pairs: &[(String, String)]) -> String {
    let all = query(pairs.iter().map(|(name, value)| (name.as_str(), Some(value.as_str()))));
    all.trim_start_matches('?').to_owned()
}

impl<T> QueryParams<T> {
    /// The value of a field; empty if it is absent.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.pairs.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Whether the address has any filter.
    pub(crate) fn is_filtered(&self) -> bool {
        self.pairs.iter().any(|(name, _)| name != "cursor")
    }

    /// The address of this page with another value of one field. It drops the cursor, because a new
    /// filter starts at the first page.
    pub(crate) fn with(&self, view: &View, name: &str, value: Option<&str>) -> String {
        let kept = self.pairs.iter().filter(|(known, _)| known != name && known != "cursor");
        let kept = kept.map(|(known, value)| (known.as_str(), Some(value.as_str())));
        format!("{}{}", view.path, query(kept.chain([(name, value)])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_fields_are_absent_and_the_rest_survives_a_round_trip() {
        let found = pairs("agentId=a+b%26c&issueId=&outcome=+&x=1=2");
        assert_eq!(
            found,
            [("agentId".to_owned(), "a b&c".to_owned()), ("x".to_owned(), "1=2".to_owned())]
        );
        assert_eq!(pairs(&join(&found)), found);
        assert_eq!(
            fields(&"a=b&".repeat(MAX_FIELDS - 1)).ok().map(|found| found.len()),
            Some(MAX_FIELDS - 1)
        );
        assert!(fields(&"a=b&".repeat(MAX_FIELDS)).is_err());
    }
}
