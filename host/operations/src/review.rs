//! What a person must see first: the rules, and what was decided. Reads on the way of a query are
//! served from memory; a change is durable before it takes effect.

pub(crate) mod change;
pub(crate) mod control;
mod judge;
mod provider_review;
pub(crate) mod written;
