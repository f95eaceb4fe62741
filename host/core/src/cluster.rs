//! A host among several on one database.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use crate::error::OpenError;
use crate::keys::Keys;
use crate::options::ServiceOptions;
use memhost_postgres::{JoinOptions, Membership};
use memhost_registry::secrets::{VaultError, key_from_env_or_file};

/// A host that has joined those on one database.
pub struct Joined {
    /// Its place among them.
    pub membership: Arc<Membership>,
    /// The key by which they know each other.
    pub peers: [u8; 32],
    /// The id of the memory that they share.
    pub store_id: Uuid,
}

impl ServiceOptions {
    /// Joins the hosts on the database of these options, under a name, with the address at which
    /// the others reach this one. All of them must have the same host key and the same vault key,
    /// which are compared.
    ///
    /// # Errors
    /// Where a key cannot be read or differs, the data directory has a store of its own, or the
    /// database cannot be used; where another host is there and the two cannot reach each other.
    pub async fn join(&self, name: String, peer_url: Option<String>) -> Result<Joined, OpenError> {
        let data_dir = &self.data_dir;
        make_data_dir(data_dir)?;
        if data_dir.join("FORMAT").exists() {
            return Err(OpenError::HasStore { path: data_dir.clone() });
        }
        let keys = Keys::open(data_dir, self.host_key_file.as_deref())?;
        let vault = blake3::derive_key("memhost 2026-11 vault check", &self.open_vault_key()?);
        let agreed = vec![
            ("host key".to_owned(), keys.check()),
            ("vault key".to_owned(), blake3::Hash::from_bytes(vault).to_hex().to_string()),
        ];
        let options =
            JoinOptions { name, peer_url, version: env!("CARGO_PKG_VERSION").to_owned(), agreed };
        let database = self.database.as_deref().unwrap_or_default();
        let membership = Arc::new(Membership::join(database, options).await?);
        Ok(Joined { membership, peers: keys.peers(), store_id: keys.store_id() })
    }

    /// The key that secrets are encrypted with, made where it is missing.
    pub(crate) fn open_vault_key(&self) -> Result<[u8; 32], VaultError> {
        key_from_env_or_file(self.named_vault_key().as_deref(), &self.vault_key_path())
    }

    /// The key that the options or the environment give.
    pub(crate) fn named_vault_key(&self) -> Option<String> {
        self.vault_key.clone().or_else(|| std::env::var("MEMHOST_VAULT_KEY").ok())
    }

    pub(crate) fn vault_key_path(&self) -> PathBuf {
        self.vault_key_file.clone().unwrap_or_else(|| self.data_dir.join("vault.key"))
    }
}

/// Makes a data directory where it is missing. Memory is for the host's user only.
///
/// # Errors
/// Where it cannot be made.
pub(crate) fn make_data_dir(data_dir: &Path) -> Result<(), OpenError> {
    memhost_files::durable::create_directory(data_dir, 0o700)
        .map_err(|error| OpenError::directory("making", data_dir, error))
}
