//! Hooks: who takes which event, deliveries and when they are due, and the block of text that recall becomes. Calling the
//! providers is the pipeline's business; this room keeps what was accepted.
//!
//! A delivery's record changes in one step with the operation that changed it.

mod context;
mod queue;
mod subscribers;

pub use context::render;
pub use queue::{HookError, Hooks, TakenDelivery};
pub use subscribers::subscribers;
