//! Records: listing, reading, creating, correcting and forgetting them. Each is a memory operation
//! of the signed-in caller: authorized and recorded like any other operation.

mod any;
pub(super) mod change;
pub(super) mod list;
mod record;
pub(super) mod scope;
pub(super) mod show;
mod touched;
pub(super) mod write;
