//! What a host consists of. Its methods are in the modules of what they do.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ed25519_dalek::SigningKey;
use tokio::sync::Notify;

use crate::access::{Attached, Tokens, WritePolicy};
use crate::background::RetryPolicy;
use crate::background::deliver_batch::BatchOrder;
use crate::background::deliveries::Deliveries;
use crate::background::jobs::Jobs;
use crate::companies::cache::Companies;
use crate::companies::known::KnownCompanies;
use crate::companies::waiting::WaitingRecords;
use crate::host::attached::MetricSource;
use crate::operations::corrections::Corrections;
use crate::review::Reviews;
use memhost_oplog::Oplog;
use memhost_ports::Clock;
use memhost_records::Records;
use memhost_registry::ActivityLog;
use memhost_registry::bindings::Bindings;
use memhost_registry::plugins::Plugins;
use memhost_registry::secrets::SecretStore;
use memhost_registry::versions::ServingBindings;
use memhost_sandbox::Sandbox;
use memhost_store::Store;
use memhost_types::CursorKey;

/// A host. Embed one in your process, or run it behind HTTP with `memhost serve`. Calls may come
/// from any task; a caller that goes away ends its own call only.
pub struct Service {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) bindings: Arc<Bindings>,
    pub(crate) activity: Arc<ActivityLog>,
    pub(crate) known: Arc<KnownCompanies>,
    pub(crate) tokens: Tokens,
    pub(crate) plugins: Arc<Plugins>,
    pub(crate) sandbox: Sandbox,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cursors: CursorKey,
    pub(crate) zero_config: bool,
    pub(crate) serving: ServingBindings,
    pub(crate) secrets: Arc<SecretStore>,
    pub(crate) oplog: Arc<Oplog>,
    pub(crate) policies: Attached<dyn WritePolicy>,
    pub(crate) metric_sources: Attached<dyn MetricSource>,
    pub(crate) deliveries: Deliveries,
    pub(crate) batch_order: BatchOrder,
    pub(crate) jobs: Jobs,
    pub(crate) reviews: Reviews,
    pub(crate) corrections: Corrections,
    pub(crate) records: Arc<Records>,
    pub(crate) companies: Companies,
    pub(crate) waiting: WaitingRecords,
    pub(crate) retry: RetryPolicy,
    /// Wakes background work: something may be due.
    pub(crate) wake: Arc<Notify>,
    /// Whether no more background work is started.
    pub(crate) is_shutting_down: AtomicBool,
    pub(crate) digest_key: [u8; 32],
    pub(crate) signing: SigningKey,
    pub(crate) data_dir: PathBuf,
    pub(crate) store_id: uuid::Uuid,
}
