//! The operation pipeline: who is calling, which binding answers, may it, open the operation, run, check, record,
//! answer. Every edge and every background worker comes through here, so that all of them are authorized, metered and
//! audited in the same way.

mod binding;
mod breaker;
mod choice;
mod control;
mod error;
mod health;
mod keys;
mod metrics;
mod open;
mod options;
mod overlay;
mod pipeline;
mod rate;
mod record;
mod run;
mod secrets;
mod serving;
mod switch;
mod vault;

pub use binding::{
    AskedView, BindingView, BuildView, CreateBinding, GrantsView, SetTarget, UpdateBinding, UsageView, WaitingView,
};
pub use breaker::BreakerState;
pub use control::{AdmittedPlugin, PluginView};
pub use error::{OpenError, ServiceError};
pub use health::{Check, Health};
pub use open::Service;
pub use options::{Audit, Caller, ServiceOptions};
pub use secrets::{SecretView, SetSecret};
pub use vault::VaultError;
