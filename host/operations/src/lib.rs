//! The memory operations. Each is authorized, admitted, recorded, run and completed by one runner
//! (`runner.rs`); a file for each operation says what differs. Review, forgetting, privacy and
//! idempotency belong to it, because every operation passes through them.
//!
//! This crate owns the table `Idempotency`.

mod admit;
mod browse;
mod builds;
mod call;
mod capture;
mod check;
mod correct;
mod corrected;
mod corrections;
mod discard;
mod discovered_jobs;
mod erase;
mod expired;
mod explain;
mod export;
mod forget;
mod forgetting;
mod get;
mod guard;
mod health;
mod holdings;
mod idempotency;
mod import;
mod kept;
mod list;
mod parts;
mod prelude;
mod privacy;
mod query;
mod replace;
mod review;
mod rows;
mod runner;
mod summary;
mod upsert;
mod waiting;

pub use builds::requested;
pub use capture::Attempt;
pub use discard::DeliveryAction;
pub use erase::ForgottenAtOnce;
pub use idempotency::{Idempotent, KeptAnswer, Ticket};
pub use parts::{Operations, Parts};
pub use query::ForHook;
pub use runner::{Answered, Step, Target, Writes};
pub use waiting::upsert_of;
