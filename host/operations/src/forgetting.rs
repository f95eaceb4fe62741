//! Forgetting by scope and by source, which is one mechanism: what is there at every binding of a
//! company, what waits to be captured, and what comes later of material that was there before.

mod at_bindings;
mod at_once;
mod scopes;
mod sources;
mod step;
pub(super) mod traces;
mod wanted;
