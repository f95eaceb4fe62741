//! What a person must see first: the rules, what waits, and what was decided. Reads on the way of a query are served from
//! memory.

pub(crate) mod control;
mod judge;
mod provider_review;
mod queue;

pub use judge::{Verdict, judge};
pub use queue::{ReviewError, Reviews, Standing};
