//! The connections of a host: how many there may be, in all and of one address, and how long each
//! may keep the host waiting. A host that is full closes those that it waits for, and answers
//! health checks on a few reserved ones.

mod options;
mod places;
mod request_body;
mod serve;
mod stream;
#[cfg(test)]
mod tests;

pub use self::options::{ConnectionOptions, raise_open_files};
pub(crate) use self::options::{open_files, within};
pub(crate) use self::places::Connections;
pub use self::serve::MAX_HEAD_BYTES;
pub(crate) use self::serve::{Routes, stopped};
