//! How a host is set up.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;

use crate::plugins::Trust;
use crate::work::retry::RetryPolicy;
use memhost_embeddings::EmbeddingsOptions;
use memhost_ports::{Clock, SystemClock};
use memhost_sandbox::SandboxOptions;
use memhost_store::{SledOptions, Store};

/// Whether the answer to a read waits until its record is on disk. The answer to a write always does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Audit {
    /// It waits.
    #[default]
    Durable,
    /// It does not: a crash may lose the records of the last reads that were answered.
    Relaxed,
}

/// Puts something between a host and its store.
pub type WrapStore = Arc<dyn Fn(Arc<dyn Store>) -> Arc<dyn Store> + Send + Sync>;

/// How a host is set up.
#[derive(Clone)]
pub struct ServiceOptions {
    /// Where everything is kept. Made where it is missing.
    pub data_dir: PathBuf,
    /// Where providers are taken from, beside the built-in one. None: `plugins` in the data directory.
    pub plugins_dir: Option<PathBuf>,
    /// Where compiled components are kept, so that none is compiled twice; made where it is missing. None: `compiled` in the
    /// data directory. Hosts of one user may share a directory: it has a key of its own, and is used only where it is the
    /// user's and nobody else can write it, for what lies there runs as that user. Where it cannot be used, the one in the
    /// data directory is.
    pub compiled_dir: Option<PathBuf>,
    /// Whose plugins are believed; everybody's by default.
    pub trust: Trust,
    /// The key that secrets are encrypted with: 64 hex digits or the base64 of 32 bytes. None: the one in the environment
    /// variable `MEMHOST_VAULT_KEY`, or else the one in the file.
    pub vault_key: Option<String>,
    /// The file of that key, made where it is missing. None: `vault.key` in the data directory.
    pub vault_key_file: Option<PathBuf>,
    /// Whether reads wait for their record.
    pub audit: Audit,
    /// Whether a company without bindings gets a default binding of the built-in provider at its first operation.
    pub zero_config: bool,
    /// What all guests together get.
    pub sandbox: SandboxOptions,
    /// How the embedded store is set up.
    pub store: SledOptions,
    /// Put between the host and the embedded store when the host is opened, such as a store that fails on purpose.
    pub wrap_store: Option<WrapStore>,
    /// When deliveries and jobs that failed are tried again.
    pub retry: RetryPolicy,
    /// Whether metrics tell companies apart. Every company is then a series of its own.
    pub metrics_company_label: bool,
    /// Where providers' texts become vectors.
    pub embeddings: EmbeddingsOptions,
    /// Whether what is due is begun: deliveries, jobs, and the removal of what is too old.
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
            trust: Trust::default(),
            vault_key: None,
            vault_key_file: None,
            audit: Audit::default(),
            zero_config: true,
            sandbox: SandboxOptions::default(),
            store: SledOptions::default(),
            wrap_store: None,
            retry: RetryPolicy::default(),
            metrics_company_label: false,
            embeddings: EmbeddingsOptions::default(),
            has_background: true,
            clock: Arc::new(SystemClock),
        }
    }
}
