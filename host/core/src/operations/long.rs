//! What makes an operation a long one, that goes on beside other long requests.

use serde_json::Value;

use memhost_types::Snippet;

/// The most records that are asked for beside short requests.
pub(crate) const MAX_SHORT_PAGE: u32 = 100;
/// The most bytes of an answer's records that are worked on beside short requests: as many as the body of one has.
const MAX_SHORT_ANSWER: usize = 64 << 10;

/// Whether these records have more bytes than are worked on beside short requests.
pub(crate) fn are_long(snippets: &[Snippet]) -> bool {
    let mut left = MAX_SHORT_ANSWER;
    snippets.iter().any(|snippet| {
        let metadata = snippet.metadata.iter().flatten().map(|(key, value)| key.len() + size_of(value)).sum::<usize>();
        let size = snippet.text.len() + metadata;
        let is_over = size > left;
        left = left.saturating_sub(size);
        is_over
    })
}

/// About how many bytes a value has.
fn size_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(size_of).sum(),
        Value::Object(members) => members.iter().map(|(key, value)| key.len() + size_of(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => size_of_val(value),
    }
}
