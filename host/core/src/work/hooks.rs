//! Hooks: which bindings take an event, deliveries and when they are due, and the text that recall becomes. `operations`
//! calls the providers; this module keeps the accepted deliveries.
//!
//! A delivery's record changes in one step with the operation that changed it.

mod context;
mod queue;
mod subscribers;

pub use context::render;
pub use queue::{HookError, Hooks};
pub use subscribers::subscribers;
