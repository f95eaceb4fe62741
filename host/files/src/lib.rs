//! Files of a host. [`Directory`] works in a tree that a provider changes meanwhile: every step is
//! made from an open directory to a name in it, and no link is followed. [`private`] makes files
//! that only the host's user may use, and [`durable`] those that survive a power failure.

mod copy;
mod directory;
pub mod durable;
mod listing;
pub mod private;
mod remove;
mod walk;

pub use self::copy::{Copied, Seen};
pub use self::directory::Directory;
pub use self::listing::{Entry, Kind, Listing, PAGE_BYTES};
pub use self::walk::{Found, MAX_DEPTH, Then};
