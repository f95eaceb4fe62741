//! Bindings and their targets: which provider answers for whom. Reads are served from memory; a
//! change is durable before it takes effect.

mod abilities;
mod activity;
mod change;
mod control;
pub(crate) mod deletion;
mod ensure;
mod error;
mod registry;

pub use abilities::Abilities;
pub(crate) use activity::NewActivity;
pub use control::{
    AskedView, BindingView, BuildView, CreateBinding, GrantsView, ResolvedView, SetTarget,
    UpdateBinding, UsageView, WaitingView,
};
pub use error::BindingError;
pub use registry::{Bindings, NewBinding, ResolutionStep, Why};
pub(crate) use registry::{Resolution, StoredTarget};
