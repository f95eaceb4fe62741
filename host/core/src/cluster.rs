//! A host among several on one database.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use crate::error::OpenError;
use crate::keys::Keys;
use crate::options::ServiceOptions;
use crate::shared_plugins::SharedPlugins;
use memhost_postgres::{Agreed, JoinOptions, Membership};
use memhost_registry::secrets::{VaultError, key_from_env_or_file};

/// The file of a shared directory's id.
const SHARED_ID: &str = ".memhost-id";
/// In place of an id: hosts share no directory.
pub(crate) const NO_DIRECTORY: &str = "none";
/// The file of a data directory's id. A copy of the directory must not have it.
const HOST_ID: &str = "host.id";

/// A host that has joined those on one database.
pub struct Joined {
    /// Its place among them.
    pub membership: Arc<Membership>,
    /// The key by which they know each other.
    pub peers: [u8; 32],
    /// The id of the memory that they share.
    pub store_id: Uuid,
    /// The plugins that they share.
    pub plugins: Arc<SharedPlugins>,
    /// The data directory is this process's.
    _lock: File,
}

impl ServiceOptions {
    /// Joins the hosts on the database of these options, under a name, with the address at which
    /// the others reach this one. All of them must have the same host key, the same vault key and
    /// the same operator token, which are compared; `token` identifies it.
    ///
    /// # Errors
    /// Where a key cannot be read or differs, the data directory has a store of its own, or the
    /// database cannot be used; where another host is there and the two cannot reach each other.
    pub async fn join(
        &self,
        name: String,
        peer_url: Option<String>,
        token: &[u8],
    ) -> Result<Joined, OpenError> {
        let data_dir = &self.data_dir;
        make_data_dir(data_dir)?;
        if data_dir.join("FORMAT").exists() {
            return Err(OpenError::HasStore { path: data_dir.clone() });
        }
        let lock = memhost_store::lock_directory(data_dir)?;
        let keys = Keys::open(data_dir, self.host_key_file.as_deref())?;
        let shared = match &self.shared_dir {
            Some(directory) => shared_id(directory)?,
            None => NO_DIRECTORY.to_owned(),
        };
        let mut agreed = agreed_keys(&keys, &self.open_vault_key()?).to_vec();
        agreed.push(agreed_directory(shared));
        let place = place(data_dir)?;
        let options = JoinOptions {
            name,
            peer_url,
            place,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            // Who reads the database must not be able to guess it.
            token: blake3::keyed_hash(&keys.peers(), token).to_hex().to_string(),
            agreed,
        };
        let database = self.database.as_deref().unwrap_or_default();
        let membership = Arc::new(Membership::join(database, options).await?);
        let directories = (data_dir.as_path(), self.plugins_dir.as_deref());
        let trust = self.trust.clone();
        let plugins = SharedPlugins::open(Arc::clone(&membership), place, directories, trust)?;
        let (peers, store_id) = (keys.peers(), keys.store_id());
        Ok(Joined { membership, peers, store_id, plugins: Arc::new(plugins), _lock: lock })
    }

    /// Makes the data directory where it is missing.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn make_data_dir(&self) -> Result<(), OpenError> {
        make_data_dir(&self.data_dir)
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

/// What says whether hosts have the same keys, and nothing else of them.
pub(crate) fn agreed_keys(keys: &Keys, vault: &[u8; 32]) -> [Agreed; 2] {
    let vault = blake3::derive_key("memhost 2026-11 vault check", vault);
    let vault = blake3::Hash::from_bytes(vault).to_hex().to_string();
    let fixed = |name, value, advice| Agreed { name, value, before: None, advice };
    [
        fixed(
            "host key",
            keys.check(),
            "copy its file from one of them, and name it with --host-key-file",
        ),
        fixed(
            "vault key",
            vault,
            "copy its file from one of them, and name it with --vault-key-file",
        ),
    ]
}

/// Makes a data directory where it is missing. Memory is for the host's user only.
///
/// # Errors
/// Where it cannot be made.
pub(crate) fn make_data_dir(data_dir: &Path) -> Result<(), OpenError> {
    memhost_files::durable::create_directory(data_dir, 0o700)
        .map_err(|error| OpenError::directory("making", data_dir, error))
}

/// What says whether hosts have the same directory for providers' files.
pub(crate) fn agreed_directory(id: String) -> Agreed {
    Agreed {
        name: "shared directory",
        value: id,
        before: Some(NO_DIRECTORY),
        advice: "name the one that they used with --shared-dir, and mount it here: the one with \
                 their `.memhost-id`; where they had none, stop them all to begin with one",
    }
}

/// The id of a data directory, made where it is missing.
fn place(data_dir: &Path) -> Result<Uuid, OpenError> {
    let path = data_dir.join(HOST_ID);
    let failed = |error: &dyn std::fmt::Display| OpenError::directory("reading", &path, error);
    match id_of(&path).map_err(|error| failed(&error))?.trim().parse() {
        Ok(place) => Ok(place),
        Err(error) => Err(failed(&error)),
    }
}

/// The id in a file, which is made where it is missing.
fn id_of(path: &Path) -> std::io::Result<String> {
    let made = Uuid::new_v4().to_string();
    match memhost_files::durable::write_new(path, made.as_bytes(), 0o600) {
        Ok(()) => Ok(made),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => fs::read_to_string(path),
        Err(error) => Err(error),
    }
}

/// The id of a directory, if hosts share it.
pub(crate) fn known_id(directory: &Path) -> String {
    fs::read_to_string(directory.join(SHARED_ID)).unwrap_or_else(|_| NO_DIRECTORY.to_owned())
}

/// The id of a directory that all hosts share, made where it is missing. It is in the directory, so
/// a host that sees another directory is told.
pub(crate) fn shared_id(directory: &Path) -> Result<String, OpenError> {
    let failed = |message: &dyn std::fmt::Display| OpenError::SharedDir {
        path: directory.to_owned(),
        message: message.to_string(),
    };
    memhost_files::durable::create_directory(directory, 0o700).map_err(|error| failed(&error))?;
    id_of(&directory.join(SHARED_ID)).map_err(|error| failed(&error))
}
