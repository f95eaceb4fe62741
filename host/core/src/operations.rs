//! The memory operations. Each is authorized, admitted, recorded, run and completed by one runner;
//! a file per operation says what differs.

mod admit;
mod browse;
pub(crate) mod call;
pub(crate) mod capture;
mod correct;
pub(crate) mod corrections;
mod discovered_jobs;
mod erase;
mod explain;
mod export;
mod forget;
mod forgetting;
mod get;
mod guard;
mod health;
pub(crate) mod idempotency;
mod import;
mod list;
pub(crate) mod prelude;
pub(crate) mod privacy;
pub(crate) mod query;
mod replace;
pub(crate) mod rows;
pub(crate) mod runner;
mod summary;
mod upsert;

pub use idempotency::{Idempotent, KeptAnswer, Ticket};
