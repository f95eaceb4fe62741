//! Bindings and their targets: which provider answers for whom. Reads are served from memory; a change is durable
//! before it is seen.

mod activity;
mod change;
mod error;
mod registry;

pub use activity::NewActivity;
pub use error::BindingError;
pub use registry::{Bindings, NewBinding, Resolution, ResolutionStep, Why};
