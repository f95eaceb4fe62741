//! A host for embedding: opening it on a data directory, and its parts.
//!
//! A [`Service`] is a host. HTTP, the explorer and the command line are built on its parts, each a
//! crate: the companies and who may enter them ([`Tenancy`]), the memory operations
//! ([`Operations`]), the control plane ([`Control`]), hooks and jobs ([`Background`]), export,
//! import and erasure ([`Transfer`]), health checks and metrics ([`Monitor`]).

mod backup;
mod caches;
mod cluster;
mod error;
mod keys;
mod monitor;
mod options;
mod permissions;
mod service;
mod shared;
mod shared_plugins;
mod store_copy;

pub use backup::{BackupRequest, BackupView, check_backup, end_quiet, restore_backup};
pub use cluster::Joined;
pub use error::OpenError;
pub use memhost_access::{
    ACT_AS_HEADERS, Access, AccessError, Act, ActAs, ActingError, Caller, CreateToken, Denied,
    Known, RotateToken, Section, Tokens, WritePolicy, is_made_here, roles,
};
pub use memhost_background::{Background, BatchReceipt, render_recall};
pub use memhost_control::{
    Abilities, AdmittedPlugin, AskedView, BindingView, BuildView, ChangedCount, Control,
    CreateBinding, GrantsView, PluginView, ResolvedView, SetTarget, UpdateBinding, UsageView,
    WaitingView, Workbench,
};
pub use memhost_operations::{DeliveryAction, Idempotent, KeptAnswer, Operations, Ticket};
pub use memhost_oplog::Audit;
pub use memhost_oplog::billing::{
    BillingError, CostEventPage, Evaluation, EvaluationReport, GroupBy, Sums, SumsQuery, SumsRow,
    SumsView,
};
pub use memhost_oplog::feed::{Follower, HostEvent, Notice};
pub use memhost_oplog::metrics::Gauges;
pub use memhost_oplog::operation::{OperationContext, OperationSink};
pub use memhost_postgres::OpenError as DatabaseError;
pub use memhost_postgres::{Database, Group, Home, HostLease, LEASE, Membership, Peer, Seen, Term};
pub use memhost_queues::{BackgroundError, RetryPolicy, ReviewError};
pub use memhost_registry::bindings::{Bindings, NewBinding, ResolutionStep, Why};
pub use memhost_registry::plugins;
pub use memhost_registry::secrets::{SecretView, SetSecret, VaultError};
pub use memhost_registry::versions::{BreakerState, HealthFound, RateState};
pub use memhost_registry::{ActivityLog, BindingError};
pub use memhost_sandbox::{CompileLimits, Compiler, CompilerProcess};
pub use memhost_tenancy::{
    Authentication, CompanyUsage, Erased, KnownCompanies, Page, Retention, ServiceError, Session,
    Sessions, Tenancy, Tombstone,
};
pub use memhost_transfer::{
    Copied, CopyError, ExportLine, ImportOptions, Imported, MAX_IMPORT_LINE, Restored, Transfer,
};
pub use monitor::{Check, Health, MetricSource, Monitor, ReadingGauges};
pub use options::{ServiceOptions, Tenure, WrapStore};
pub use service::{Service, compile_ahead};
pub use shared::SharedParts;
pub use shared_plugins::SharedPlugins;
pub use store_copy::{StoreCopy, StoreCopyError};
