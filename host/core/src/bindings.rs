//! The control plane of bindings. `memhost_registry` owns their rows and what serves them.

mod abilities;
mod control;
pub(crate) mod deletion;
mod ensure;

pub use abilities::Abilities;
pub use control::{
    AskedView, BindingView, BuildView, CreateBinding, GrantsView, ResolvedView, SetTarget,
    UpdateBinding, UsageView, WaitingView,
};
