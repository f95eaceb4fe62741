//! The control plane: bindings and what they may reach, secrets, costs and budgets, the logs, the
//! providers, and deliveries and jobs as an operator sees them.

mod abilities;
mod billing;
mod bindings;
mod control;
mod deletion;
mod ensure;
mod explained;
mod figures;
mod follow;
mod log;
mod queued;
mod secrets;
mod workbench;

pub use abilities::Abilities;
pub use bindings::{
    AskedView, BindingView, BuildView, CreateBinding, GrantsView, ResolvedView, SetTarget,
    UpdateBinding, UsageView, WaitingView,
};
pub use control::Control;
pub use deletion::finish_cut as finish_cut_deletions;
pub use log::{AdmittedPlugin, PluginView};
pub use queued::{ChangedCount, wrong_status};
pub use workbench::Workbench;
