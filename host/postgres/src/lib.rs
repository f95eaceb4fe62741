//! The store on PostgreSQL, which several hosts may share.
//!
//! A company has one home: the host whose token stands in its row of `homes`. Everything that a
//! host writes of a company goes through one lane, a connection that commits what waits in one
//! transaction after the other; each of them holds the rows of `homes` of the company and of its
//! group `FOR SHARE` and compares the tokens, so a host that is not the home any more writes
//! nothing. `FOR KEY SHARE` would not do: it does not hold up the `UPDATE` with which another host
//! takes the group or the company over.
//!
//! What is written is seen by every call of this host at once, and is durable when its
//! [`memhost_store::Commit`] says so. What cannot be written within ten seconds is given up with
//! everything of its companies that waits behind it; they are then loaded from the database again.

mod ask;
mod batch;
mod clock;
mod company;
mod connect;
mod coordination;
mod costs;
mod database;
mod error;
mod facets;
mod find;
mod group;
mod heartbeat;
mod homes;
mod hosts;
mod item;
mod lane;
mod lease;
mod log;
mod maintenance;
mod page;
mod partition;
mod place;
mod record;
mod shelf;
mod store;
mod summed;
mod sums;
mod tables;
#[cfg(feature = "testing")]
#[allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
pub mod testing;

pub use self::clock::DatabaseClock;
pub use self::database::Database;
pub use self::error::OpenError;
pub use self::group::{Group, Term};
pub use self::heartbeat::{Agreed, Home, JoinOptions, Peer, Seen};
pub use self::hosts::{DatabaseState, Membership, wait_until_unused};
pub use self::lease::{HostLease, LEASE};
pub use self::shelf::{MOST_OF_ONE, SharedPlugin, Shelf, Shelved};
pub use self::store::{PostgresOptions, PostgresStore};
