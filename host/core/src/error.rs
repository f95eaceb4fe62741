//! Why a host did not start.

use std::fmt::Display;
use std::path::PathBuf;

use memhost_access::AccessError;
use memhost_embeddings::EmbeddingsError;
use memhost_registry::BindingError;
use memhost_registry::plugins::PluginError;
use memhost_registry::secrets::VaultError;
use memhost_sandbox::AdmissionError;
use memhost_store::StoreError;

/// Why a host did not start.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum OpenError {
    #[error(
        "{action} {path} failed: {message}; choose a directory that this user may write, with \
         --data-dir"
    )]
    Directory { action: &'static str, path: PathBuf, message: String },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Database(#[from] memhost_postgres::OpenError),
    #[error(transparent)]
    Binding(#[from] BindingError),
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error("the sandbox could not be started: {0}")]
    Sandbox(#[from] AdmissionError),
    #[error(transparent)]
    Embeddings(#[from] EmbeddingsError),
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// Secrets are stored, and the key that opens them is not there.
    #[error(
        "the vault key {path} is missing, and secrets are encrypted with it; restore it from a \
         backup, or make a new one \
         with `openssl rand -hex 32`, readable by its owner only, and set the secrets again"
    )]
    VaultKeyGone { path: PathBuf },
    #[error(
        "the data directory {path} has a store of its own, which a host on a database does not \
         use; choose another directory with --data-dir, and move its memory with `memhost store \
         copy`"
    )]
    HasStore { path: PathBuf },
    #[error(
        "the host key {path} cannot be used: {message}; name another file with --host-key-file"
    )]
    HostKey { path: PathBuf, message: String },
    #[error(
        "the shared directory {path} cannot be used: {message}; name one that this user may write, \
         with --shared-dir"
    )]
    SharedDir { path: PathBuf, message: String },
    #[error(
        "the store has a part of a copy only; finish it with `memhost store copy`, or name another \
         one"
    )]
    CutCopy,
    #[error("the plugins could not be read: {0}")]
    Plugins(#[from] PluginError),
}

impl OpenError {
    pub(crate) fn directory(
        action: &'static str,
        path: impl Into<PathBuf>,
        error: impl Display,
    ) -> Self {
        Self::Directory { action, path: path.into(), message: error.to_string() }
    }
}
