//! From text to terms.

mod analyzer;
mod words;

pub(crate) use analyzer::{Analyzer, Term};
pub(crate) use memhost_sdk::words::words;
pub(crate) use words::{parts, passage_lengths, passage_starts};
