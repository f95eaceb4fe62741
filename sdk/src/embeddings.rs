//! The `embeddings` import: text to vectors, by a model that the operator chose.
//!
//! Most providers work with and without it. [`model`] answers none if nothing can be embedded, so
//! that both cases are one `match`:
//!
//! ```
//! # memhost_sdk::testing::reset(serde_json::json!({}));
//! let vectors = match memhost_sdk::embeddings::model()? {
//!     Some(_) => Some(memhost_sdk::embeddings::embed(&["a question".to_owned()])?.vectors),
//!     None => None, // rank by words alone
//! };
//! assert!(
//!     vectors.is_none(),
//!     "a native test has no model until `testing::embed_with` gives it one",
//! );
//! # Ok::<(), memhost_sdk::embeddings::Error>(())
//! ```
//!
//! The host records what a call used: a provider must not report it again as usage of its own.

use crate::host::embeddings as raw;
use crate::types;

pub use crate::bindings::provider::paperclip::memory::embeddings::{Embedded, Model};

/// Texts that one call may hold.
pub const MAX_TEXTS: usize = 256;

/// Bytes that one text may have.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Questions about nothing: words that chance has made of syllables. A record that is less similar
/// to a question than one of these is no answer to it, whatever the model's scale: the question is
/// closer to nonsense than to what is known. Use it where no word of the question is found either.
pub const MADE_UP: [&str; 16] = [
    "tujewox fome rohu",
    "cajex titu mobak sudinex",
    "dufo rabaje rosajin",
    "nasage covex",
    "wegorak jaluma",
    "fageti modadex",
    "bupix guvugo meke rodo",
    "culek suviwe",
    "vudi balok",
    "cemix digon",
    "cavin budo nedatun gipak",
    "boburox dadan",
    "rutotu mudo fovi",
    "gujuhik kirijo rene",
    "padihak lesowon",
    "nacicix mubero lega fupajek",
];

/// Why there are no vectors.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The binding has no `embeddings` grant.
    #[error("embeddings are not granted: {0}")]
    Denied(String),
    /// The host has no model.
    #[error("no embedding model: {0}")]
    Unavailable(String),
    /// More than [`MAX_TEXTS`] texts, or one of more than [`MAX_TEXT_BYTES`].
    #[error("embeddings limit: {0}")]
    LimitExceeded(String),
    /// The model failed.
    #[error("embedding failed: {0}")]
    Failed(String),
}

impl From<raw::Error> for Error {
    fn from(error: raw::Error) -> Self {
        match error {
            raw::Error::Denied(message) => Self::Denied(message),
            raw::Error::Unavailable(message) => Self::Unavailable(message),
            raw::Error::LimitExceeded(message) => Self::LimitExceeded(message),
            raw::Error::Failed(message) => Self::Failed(message),
        }
    }
}

impl From<Error> for types::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Failed(_) | Error::Unavailable(_) => Self::unavailable(error.to_string(), None),
            other => Self::internal(other.to_string()),
        }
    }
}

/// How similar a question's vector is to the most similar of [`MADE_UP`], given their vectors.
pub fn nonsense_level(question: &[f32], made_up: &[Vec<f32>]) -> f32 {
    let cosine = |other: &Vec<f32>| other.iter().zip(question).map(|(a, b)| a * b).sum::<f32>();
    made_up.iter().map(cosine).fold(f32::MIN, f32::max)
}

/// The model, or none if the binding has no grant or the host has no model. Vectors of models with
/// different names must not be compared: keep the name beside what you store.
///
/// # Errors
/// If the host has a model but cannot name it.
pub fn model() -> Result<Option<Model>, Error> {
    match raw::get_model() {
        Ok(model) => Ok(Some(model)),
        Err(raw::Error::Denied(_) | raw::Error::Unavailable(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// One vector of unit length for each text, in their order; at most [`MAX_TEXTS`] texts of
/// [`MAX_TEXT_BYTES`].
///
/// # Errors
/// If there is no model, a limit is exceeded or the model fails.
pub fn embed(texts: &[String]) -> Result<Embedded, Error> {
    Ok(raw::embed(texts)?)
}

#[cfg(test)]
mod tests {
    use crate::testing;

    #[test]
    fn a_test_has_a_model_only_after_embed_with() {
        testing::reset(serde_json::json!({}));
        assert!(super::model().unwrap().is_none());
        assert!(matches!(super::embed(&["a".to_owned()]), Err(super::Error::Denied(_))));
        testing::embed_with("letters", 2, |text| {
            if text.starts_with('a') { vec![1.0, 0.0] } else { vec![0.0, 1.0] }
        });
        assert_eq!(super::model().unwrap().unwrap().name, "letters");
        let vectors = super::embed(&["b".to_owned(), "a".to_owned()]).unwrap().vectors;
        assert_eq!(vectors, [[0.0, 1.0], [1.0, 0.0]]);
        let many = vec![String::new(); super::MAX_TEXTS + 1];
        assert!(matches!(super::embed(&many), Err(super::Error::LimitExceeded(_))));
    }
}
