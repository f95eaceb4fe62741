//! The memory operations. Each is authorized, admitted, recorded, run and completed in the same way.

mod admit;
pub(crate) mod call;
pub(crate) mod capture;
mod discovered_jobs;
pub(crate) mod idempotency;
mod inspect;
pub(crate) mod pipeline;
pub(crate) mod privacy;
pub(crate) mod record;
mod record_transfer;
mod summary;

pub use idempotency::{Idempotent, KeptAnswer, Ticket};
