//! What makes an operation a long one, that goes on beside other long requests.

use memhost_types::Snippet;

/// The most records that are asked for beside short requests.
pub(crate) const MAX_SHORT_PAGE: u32 = 100;
/// The most bytes of an answer's records that are worked on beside short requests: as many as the body of one has.
const MAX_SHORT_ANSWER: usize = 64 << 10;

/// Whether these records have more bytes than are worked on beside short requests.
pub(crate) fn are_long(snippets: &[Snippet]) -> bool {
    let mut bytes = 0;
    snippets.iter().any(|snippet| {
        bytes += snippet.weight();
        bytes > MAX_SHORT_ANSWER
    })
}
