//! The operations of a host, and what they need: bindings, access, versions of providers, hooks and
//! jobs, review, billing.
//!
//! A [`Service`] is a host. HTTP, the explorer and the command line are built on its methods. Each
//! method authorizes its caller, and each memory operation leaves a record.

mod access;
mod background;
mod billing;
mod bindings;
mod companies;
mod error;
mod host;
mod operations;
mod paging;
mod review;

pub use access::{
    ACT_AS_HEADERS, Access, AccessError, Act, ActAs, ActingError, Authentication, Caller,
    CreateToken, Denied, Known, RotateToken, Section, Tokens, WritePolicy, is_mcp, roles,
};
pub use background::{
    BackgroundError, BatchReceipt, ChangedCount, DeliveryAction, RetryPolicy, render_recall,
};
pub use bindings::{
    Abilities, AskedView, BindingView, BuildView, CreateBinding, GrantsView, ResolvedView,
    SetTarget, UpdateBinding, UsageView, WaitingView,
};
pub use companies::{
    CompanyUsage, Erased, ExportLine, ImportOptions, Imported, KnownCompanies, MAX_IMPORT_LINE,
    Retention, Tombstone,
};
pub use error::{OpenError, ServiceError};
pub use host::{
    AdmittedPlugin, Audit, BackupRequest, BackupView, Check, Health, MetricSource, PluginView,
    ReadingGauges, Service, ServiceOptions, Workbench, WrapStore, check_backup, restore_backup,
};
pub use memhost_oplog::billing::{
    BillingError, CostEventPage, Evaluation, EvaluationReport, GroupBy, Sums, SumsQuery, SumsRow,
    SumsView,
};
pub use memhost_oplog::feed::{Follower, HostEvent, Notice};
pub use memhost_oplog::metrics::Gauges;
pub use memhost_oplog::operation::{OperationContext, OperationSink};
pub use memhost_registry::bindings::{Bindings, NewBinding, ResolutionStep, Why};
pub use memhost_registry::plugins;
pub use memhost_registry::secrets::{SecretView, SetSecret, VaultError};
pub use memhost_registry::versions::{BreakerState, HealthFound, RateState};
pub use memhost_registry::{ActivityLog, BindingError};
pub use memhost_sandbox::{CompileLimits, Compiler, CompilerProcess};
pub use operations::{Idempotent, KeptAnswer, Ticket};
pub use paging::Page;
pub use review::ReviewError;
