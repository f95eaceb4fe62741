//! What a provider needs whose records are at a service, beside [`http`](crate::http).
//!
//! - [`Records`] are the contract's calls on records, on top of the routes of a [`Service`]. [`Adapter`] makes a provider of
//!   them, and [`Elsewhere`] its jobs where the service extracts for a while: that is most of an adapter. They use what
//!   follows, which a provider can also use by itself.
//! - [`Tag`] is what the service does not keep of a record: it travels in the record's metadata there, and separates
//!   the partitions. [`Filter`] is the contract's filter on metadata.
//! - [`Writes`] makes writes happen once at a service that does not know idempotency, and remembers which id a record
//!   has there.
//! - [`whole`] and [`pages`] make the contract's cursors of lists that a service gives whole, or by number of page.
//! - [`plain`], [`hex`] and [`partition_name`] make names of what the host gives.
//! - [`utc`], [`of_unix`] and [`without_recall`] bring times and texts into the contract's form.

mod adapter;
mod list;
mod names;
mod records;
mod service;
mod supersede;
mod tag;
mod time;
mod writes;

pub use self::adapter::{Adapter, Elsewhere, Infer, Work, begun, scope_of};
pub use self::list::{pages, whole};
pub use self::names::{hex, partition_name, partition_of, plain, unhex};
pub use self::records::Records;
pub use self::service::{Listing, Record, Service};
pub use self::tag::{Filter, Tag};
pub use self::time::{of_unix, to_unix_millis, utc};
pub use self::writes::Writes;

/// The text without the blocks of recalled memory that memhost's hooks put into conversations. A service that extracts
/// would otherwise learn its own memory again.
pub fn without_recall(text: &str) -> String {
    const BLOCK: [&str; 2] = ["<memhost-recall>", "</memhost-recall>"];
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once(BLOCK[0]) {
        kept.push_str(before);
        rest = after.split_once(BLOCK[1]).map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests;
