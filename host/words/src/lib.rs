//! The words of a text, and when two spellings are one word. This is a crate of its own because the
//! host's filter by text, the SDK and the providers must agree on it. It uses no crate of ours,
//! because it runs in the sandbox, too.
//!
//! Composed and decomposed letters, letters of full width, capitals and small letters are one
//! spelling, as in Unicode's compatible caseless matching. Thai, Lao, Khmer, Burmese, Chinese,
//! Japanese and Korean have no spaces between words, or have particles that are written together
//! with them. There, each letter with its marks is a word: no dictionary is needed, and every word
//! of a sentence can be found.

mod spelling;
mod split;

pub use spelling::{plain, small};
pub use split::{Word, is_mark, is_spaceless, terms, words};
