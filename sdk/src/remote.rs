//! What a provider needs whose records are at a service, beside [`http`](crate::http).
//!
//! - [`Service`] is what a provider is and its service's routes: whoever implements it is a
//!   provider, with [`Records`] for the contract's calls. [`Elsewhere`] are its jobs, where the
//!   service extracts from a [`Capture`] for a while, and [`Wipes`] forgets a company at once. They
//!   use what follows, which a provider can also use by itself.
//! - [`Tag`] is what the service does not keep of a record: it travels in the record's metadata
//!   there, and separates the partitions. [`Kept`] also holds the record's key, and its text where
//!   the service would change it. [`Filter`] is the contract's filter on metadata.
//! - [`Writes`] makes writes happen once at a service that does not know idempotency, and remembers
//!   which id a record has there.
//! - [`whole`] and [`pages`] make the contract's cursors of lists that a service gives whole, or by
//!   number of page, and [`offset`] those of trees; [`items`] looks through the first pages of a
//!   list.
//! - [`owner`] is what a service calls the company. [`plain`], [`escaped`], [`hex`] and
//!   [`partition_name`] make names of what the host gives, and [`partition_choices`] says what a
//!   service filters partitions by.
//! - [`utc`], [`of_unix`], [`now`] and [`without_recall`] bring times and texts into the contract's
//!   form.

mod capture;
mod elsewhere;
mod list;
mod names;
mod provider;
mod records;
mod service;
mod supersede;
mod tag;
mod time;
mod writes;

pub use self::capture::{Capture, Infer, Learnt};
pub use self::elsewhere::{Elsewhere, Progress, Work, work_of};
pub use self::list::{items, offset, pages, whole};
pub use self::names::{
    escaped, hex, owner, partition_choices, partition_name, partition_of, plain, unescaped, unhex,
};
pub use self::provider::Wipes;
pub use self::records::Records;
pub use self::service::{Kept, Listing, Record, Search, Service};
pub use self::tag::{Filter, Tag};
pub use self::time::{now, of_unix, to_unix_millis, utc};
pub use self::writes::Writes;

/// The text without the blocks of recalled memory that memhost's hooks put into conversations. A
/// service that extracts would otherwise learn its own memory again.
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
