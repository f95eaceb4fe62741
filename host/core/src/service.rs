//! The operation pipeline: who is calling, which binding answers, may it, open the operation, run, check, record,
//! answer. Every edge and every background worker comes through here, so that all of them are authorized, metered and
//! audited in the same way.

mod abilities;
mod admit;
mod background;
mod backup;
mod binding;
mod breaker;
mod capture;
mod choice;
mod company;
mod control;
mod deliver;
mod delivery;
mod error;
mod evaluation;
mod event;
mod extract;
mod feed;
mod health;
mod held;
mod hydrate;
mod idempotency;
mod import;
mod job;
mod keys;
mod left;
mod lines;
mod look;
mod metrics;
mod money;
mod open;
mod options;
mod overlay;
mod paging;
mod pipeline;
mod privacy;
mod rate;
mod record;
mod review;
mod run;
mod secrets;
mod serving;
mod summary;
mod switch;
mod tokens;
mod transfer;
mod vault;
mod workbench;

pub use abilities::Abilities;
pub use backup::{BackupRequest, BackupView, check_backup, restore_backup};
pub use binding::{
    AskedView, BindingView, BuildView, CreateBinding, GrantsView, ResolvedView, SetTarget, UpdateBinding, UsageView,
    WaitingView, schema_problem,
};
pub use breaker::BreakerState;
pub use company::{Erased, Retention, Tombstone};
pub use control::{AdmittedPlugin, PluginView};
pub use error::{OpenError, ServiceError};
pub use evaluation::{Evaluation, EvaluationReport};
pub use feed::{Follower, Happened, Notice};
pub use health::{Check, Health};
pub use idempotency::{Idempotent, KeptAnswer, Ticket};
pub use money::{GroupBy, Sums, SumsQuery, SumsRow, SumsView};
pub use open::Service;
pub use options::{Audit, ServiceOptions};
pub use rate::RateState;
pub use tokens::Authenticated;

pub use crate::access::{Act, Caller, CreateToken};
pub use import::Imported;
pub use paging::Page;
pub use secrets::{SecretView, SetSecret};
pub use vault::VaultError;
pub use workbench::Workbench;
