//! The binding's directory: what is in it, and how files come into it. Nothing here knows what a record is.

mod names;
mod transaction;
mod tree;

pub(crate) use names::new_path;
pub(crate) use transaction::Write;
pub(crate) use tree::{Files, Stamp, folder};
