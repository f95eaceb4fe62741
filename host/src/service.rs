//! The operation pipeline: who is calling, which binding answers, may it, open the operation, run, check, record,
//! answer. Every edge and every background worker comes through here, so that all of them are authorized, metered and
//! audited in the same way.

mod control;
mod error;
mod keys;
mod options;
mod pipeline;
mod record;
mod serving;

pub use control::{BindingView, CreateBinding, PluginView, SetTarget};
pub use error::{OpenError, ServiceError};
pub use options::{Audit, Caller, ServiceOptions};
pub use pipeline::Service;
