//! The options of a host.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::shared::SharedParts;
use memhost_embeddings::EmbeddingsOptions;
use memhost_oplog::Audit;
use memhost_ports::{Clock, SystemClock};
use memhost_postgres::{Membership, Term};
use memhost_queues::RetryPolicy;
use memhost_registry::plugins::Trust;
use memhost_sandbox::SandboxOptions;
use memhost_store::{SledOptions, Store};

/// The default of [`ServiceOptions::compact_after`]. A compaction of a large store takes a while,
/// and it is to end within a day.
const COMPACT_AFTER: Duration = Duration::from_hours(12);

/// Puts something between a host and its store.
pub type WrapStore = Arc<dyn Fn(Arc<dyn Store>) -> Arc<dyn Store> + Send + Sync>;

/// The right of a service to serve a group of companies, on a database that several hosts share.
#[derive(Clone)]
pub struct Tenure {
    /// The place of its host among the others.
    pub membership: Arc<Membership>,
    /// The group, and the right to write what belongs to it.
    pub term: Term,
    /// What it shares with the other services of its host.
    pub shared: Arc<SharedParts>,
}

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
    /// `postgres://USER:PASSWORD@HOST/DATABASE`. The data directory still has keys and components.
    pub database: Option<String>,
    /// What it serves of the database. `None`: it takes over each company that it is asked for, so
    /// it must be the only one.
    pub tenure: Option<Tenure>,
    /// The directory of providers' files, of a file system that all hosts share. `None`: the data
    /// directory, and where several hosts share a database none: providers that keep files are
    /// refused then.
    pub shared_dir: Option<PathBuf>,
    /// The file of the host's key, made where it is missing. `None`: `host.key` in the data
    /// directory. Hosts on one database have the same.
    pub host_key_file: Option<PathBuf>,
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
    /// Where the files of providers are. `None`: no directory is seen by every host.
    pub(crate) fn files_dir(&self) -> Option<PathBuf> {
        let is_alone = self.tenure.as_ref().is_none_or(|at| at.membership.is_alone());
        self.shared_dir.clone().or_else(|| is_alone.then(|| self.data_dir.clone()))
    }

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
            tenure: None,
            shared_dir: None,
            host_key_file: None,
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
