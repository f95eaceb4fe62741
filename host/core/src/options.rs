//! The options of a host.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use memhost_embeddings::EmbeddingsOptions;
use memhost_oplog::Audit;
use memhost_ports::{Clock, SystemClock};
use memhost_queues::RetryPolicy;
use memhost_registry::plugins::Trust;
use memhost_sandbox::SandboxOptions;
use memhost_store::{SledOptions, Store};

/// The default of [`ServiceOptions::compact_after`]. A compaction of a large store takes a while,
/// and it is to end within a day.
const COMPACT_AFTER: Duration = Duration::from_hours(12);

/// Puts something between a host and its store.
pub type WrapStore = Arc<dyn Fn(Arc<dyn Store>) -> Arc<dyn Store> + Send + Sync>;

/// The options of a host.
#[derive(Clone)]
pub struct ServiceOptions {
    /// The data directory. It is made where it is missing.
    pub data_dir: PathBuf,
    /// The plugins directory. None: `plugins` in the data directory.
    pub plugins_dir: Option<PathBuf>,
    /// The directory of compiled components; it is made where it is missing. None: `compiled` in
    /// the data directory. Hosts of one user may share a directory, which has a key of its own. It
    /// is used only if it belongs to the user and nobody else can write to it, because its
    /// components run as that user. Otherwise the one in the data directory is used.
    pub compiled_dir: Option<PathBuf>,
    /// Whether opening waits until every file of the plugins directory is admitted or refused. If
    /// not, calls of a provider that is still being compiled are refused with `provider_loading`.
    pub waits_for_plugins: bool,
    /// Whose plugins are admitted; everybody's by default.
    pub trust: Trust,
    /// The key that secrets are encrypted with: 64 hex digits or the base64 of 32 bytes. None: the
    /// one in the environment variable `MEMHOST_VAULT_KEY`, or else the one in the file.
    pub vault_key: Option<String>,
    /// The file of that key, made where it is missing. None: `vault.key` in the data directory.
    pub vault_key_file: Option<PathBuf>,
    /// Whether reads wait for their record.
    pub audit: Audit,
    /// Whether a company without bindings gets a default binding of the built-in provider at its
    /// first operation.
    pub zero_config: bool,
    /// The limits of all guests together.
    pub sandbox: SandboxOptions,
    /// The options of the embedded store. Its quota of a company holds for every store.
    pub store: SledOptions,
    /// A database that keeps memory instead of the embedded store:
    /// `postgres://USER:PASSWORD@HOST/DATABASE`. One host at a time may use it: what a company has
    /// in memory is not shared yet. The data directory still has keys, components and the files of
    /// providers.
    pub database: Option<String>,
    /// Wraps the store when the host is opened, such as in a store that fails on purpose.
    pub wrap_store: Option<WrapStore>,
    /// When deliveries and jobs that failed are tried again.
    pub retry: RetryPolicy,
    /// Whether the company is a label of metrics. Every company is then a series of its own.
    pub metrics_company_label: bool,
    /// How texts of providers become vectors.
    pub embeddings: EmbeddingsOptions,
    /// How long the store's files may keep what was forgotten, until they are compacted.
    pub compact_after: Duration,
    /// Whether background work runs: deliveries, jobs, and the removal of old operations.
    pub has_background: bool,
    /// Time and randomness.
    pub clock: Arc<dyn Clock>,
}

impl ServiceOptions {
    /// The defaults, with everything in `data_dir`.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            plugins_dir: None,
            compiled_dir: None,
            waits_for_plugins: true,
            trust: Trust::default(),
            vault_key: None,
            vault_key_file: None,
            audit: Audit::default(),
            zero_config: true,
            sandbox: SandboxOptions::default(),
            store: SledOptions::default(),
            database: None,
            wrap_store: None,
            retry: RetryPolicy::default(),
            metrics_company_label: false,
            embeddings: EmbeddingsOptions::default(),
            compact_after: COMPACT_AFTER,
            has_background: true,
            clock: Arc::new(SystemClock),
        }
    }
}
