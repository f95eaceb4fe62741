//! The operations of a host, and what they need: bindings, access, versions of providers, hooks and jobs, review, money.
//!
//! A [`Service`] is a host. HTTP, the explorer and the command line are built on its methods. Each method authorizes its
//! caller, and each memory operation leaves a record.

pub mod access;
pub mod bindings;
mod companies;
mod error;
mod host;
pub mod money;
mod operations;
mod paging;
pub mod plugins;
pub mod review;
mod versions;
pub mod work;

pub use access::{Act, Authentication, Caller, CreateToken};
pub use bindings::{
    Abilities, AskedView, BindingView, BuildView, CreateBinding, GrantsView, ResolvedView, SetTarget, UpdateBinding,
    UsageView, WaitingView,
};
pub use companies::{Erased, Imported, Retention, Tombstone};
pub use error::{OpenError, ServiceError};
pub use host::{
    AdmittedPlugin, Audit, BackupRequest, BackupView, Check, Follower, Health, HostEvent, Notice, PluginView,
    SecretView, Service, ServiceOptions, SetSecret, VaultError, Workbench, WrapStore, check_backup, restore_backup,
};
pub use money::{Evaluation, EvaluationReport, GroupBy, Sums, SumsQuery, SumsRow, SumsView};
pub use operations::{Idempotent, KeptAnswer, Ticket};
pub use paging::Page;
pub use versions::{BreakerState, RateState};
