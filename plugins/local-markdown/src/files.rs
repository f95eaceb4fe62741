//! The binding's directory: listing, reading and writing files. Nothing here depends on records.

mod names;
mod transaction;
mod tree;

pub(crate) use names::{new_path, renamed};
pub(crate) use transaction::Write;
pub(crate) use tree::{Files, Stamp, folder, tell};
