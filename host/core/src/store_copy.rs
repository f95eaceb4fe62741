//! Moves memory between a data directory and a database.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cluster::{NO_DIRECTORY, agreed_directory, agreed_keys, known_id, shared_id};
use crate::error::OpenError;
use crate::keys::Keys;
use memhost_files::durable;
use memhost_postgres::{
    self as postgres, Agreed, JoinOptions, Membership, PostgresOptions, PostgresStore, Shelf,
};
use memhost_registry::plugins::ComponentsDir;
use memhost_registry::secrets::key_from_env_or_file;
use memhost_store::{SledOptions, SledStore};
use uuid::Uuid;

use memhost_transfer::{Copied, CopyEnd, CopyError, copy_store};

const HOST_KEY: &str = "host.key";
const VAULT_KEY: &str = "vault.key";

/// From where to where memory is copied.
#[derive(Debug, Clone)]
pub struct StoreCopy {
    /// The data directory. One that is filled must be empty or missing.
    pub data_dir: PathBuf,
    /// The database: `postgres://USER:PASSWORD@HOST/DATABASE`.
    pub database: String,
    /// Whether the database is filled, and not the data directory.
    pub is_into_database: bool,
    /// Where the hosts on the database have the files of providers. All of them have to name it as
    /// their shared directory once the database was filled.
    pub files: Option<PathBuf>,
    /// The hosts on the database that is copied have no such files.
    pub is_without_files: bool,
    /// The host's key. `None`: `host.key` in the data directory.
    pub host_key_file: Option<PathBuf>,
    /// The key that secrets are encrypted with. `None`: `vault.key` in the data directory.
    pub vault_key_file: Option<PathBuf>,
}

/// Why memory was not copied.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum StoreCopyError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Copy(#[from] CopyError),
    #[error(
        "the key file {path} is not there, and what it encrypts would be lost; name it with {flag}"
    )]
    NoKey { path: PathBuf, flag: &'static str },
    #[error(
        "the key file {path} is not that of the data directory; leave {flag} away, or name the \
         right one"
    )]
    OtherKey { path: PathBuf, flag: &'static str },
    #[error(
        "it is not known where the hosts have the files of providers; name that directory with \
         --files: their shared_dir, or the data directory of a single host; where every provider \
         keeps its records in the database, say --without-files"
    )]
    NoFiles,
    #[error("{path} is no data directory of a host; name one that a host has used")]
    NoStore { path: PathBuf },
}

impl From<postgres::OpenError> for StoreCopyError {
    fn from(error: postgres::OpenError) -> Self {
        Self::Open(error.into())
    }
}

impl StoreCopy {
    /// Copies everything and compares it; `say` gets a line for each company. No host may run on
    /// either of the two. A copy that was cut off goes on when this is called again.
    ///
    /// # Errors
    /// Where a host runs, a key is missing or not the hosts', what is filled is not empty, or the
    /// copy differs.
    pub async fn run(&self, say: impl FnMut(&str)) -> Result<Copied, StoreCopyError> {
        let Self { data_dir, database, is_into_database, .. } = self;
        if *is_into_database && !data_dir.join("FORMAT").exists() {
            return Err(StoreCopyError::NoStore { path: data_dir.clone() });
        }
        let host_key = self.host_key_file.clone().unwrap_or_else(|| data_dir.join(HOST_KEY));
        let vault_key = self.vault_key_file.clone().unwrap_or_else(|| data_dir.join(VAULT_KEY));
        let named = std::env::var("MEMHOST_VAULT_KEY").ok();
        // A missing one would be made, and the one of the directory is the right one.
        for (named, own, flag) in
            [(&host_key, HOST_KEY, "--host-key-file"), (&vault_key, VAULT_KEY, "--vault-key-file")]
        {
            let own = fs::read(data_dir.join(own)).ok();
            if own.is_some_and(|own| fs::read(named).is_ok_and(|named| named != own)) {
                return Err(StoreCopyError::OtherKey { path: named.clone(), flag });
            }
        }
        if let Some(files) = &self.files {
            self.check_files(files)?;
        }
        need(&host_key, "--host-key-file")?;
        if named.is_none() {
            need(&vault_key, "--vault-key-file")?;
        }
        let keys = Keys::open(data_dir, Some(&host_key))?;
        let vault = key_from_env_or_file(named.as_deref(), &vault_key).map_err(OpenError::from)?;
        let mut agreed = agreed_keys(&keys, &vault).to_vec();
        agreed.extend(self.directory()?);
        postgres::wait_until_unused(database).await?;
        let membership = self.hold(&keys, agreed).await?;
        let copied = self.copy(&keys, (&host_key, &vault_key), say).await;
        membership.leave().await;
        copied
    }

    /// Joins the hosts on the database as one that no other reaches, so none can start meanwhile.
    async fn hold(&self, keys: &Keys, agreed: Vec<Agreed>) -> Result<Membership, StoreCopyError> {
        let options = JoinOptions {
            name: "memhost store copy".to_owned(),
            peer_url: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            place: Uuid::new_v4(),
            token: keys.check(),
            agreed,
        };
        Ok(Membership::join(&self.database, options).await?)
    }

    async fn copy(
        &self,
        keys: &Keys,
        (host_key, vault_key): (&Path, &Path),
        say: impl FnMut(&str),
    ) -> Result<Copied, StoreCopyError> {
        let Self { data_dir, database, is_into_database, .. } = self;
        let sled = open_directory(data_dir).await?;
        let options = PostgresOptions { address: database.clone(), ..PostgresOptions::default() };
        let server = PostgresStore::open(options).await?;
        let directory = CopyEnd { store: &sled, files: Some(data_dir) };
        let server = CopyEnd { store: &server, files: self.files.as_deref() };
        let (from, to) = match is_into_database {
            true => (directory, server),
            false => (server, directory),
        };
        let path = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.clone());
        let source = format!("the store {} in {}", keys.store_id(), path.display());
        let copied = copy_store(from, to, &source, say).await?;
        self.copy_builds().await?;
        if !is_into_database {
            copy_key(host_key, &data_dir.join(HOST_KEY))?;
            if vault_key.exists() {
                copy_key(vault_key, &data_dir.join(VAULT_KEY))?;
            }
        }
        Ok(copied)
    }

    /// Refuses a directory of files that cannot be meant.
    fn check_files(&self, files: &Path) -> Result<(), StoreCopyError> {
        let path = || files.to_owned();
        if !self.is_into_database && !files.join("memory").is_dir() {
            return Err(CopyError::NoFiles { path: path() }.into());
        }
        if resolved(files).starts_with(resolved(&self.data_dir)) {
            return Err(CopyError::HasFiles { path: path() }.into());
        }
        Ok(())
    }

    /// What the hosts on the database have to agree on about their directory of files.
    fn directory(&self) -> Result<Option<Agreed>, StoreCopyError> {
        Ok(match &self.files {
            Some(files) if self.is_into_database => Some(agreed_directory(shared_id(files)?)),
            // The directory of a single host has no id.
            Some(files) => Some(agreed_directory(known_id(files))),
            None if self.is_into_database => None,
            None if self.is_without_files => Some(agreed_directory(NO_DIRECTORY.to_owned())),
            None => return Err(StoreCopyError::NoFiles),
        })
    }

    /// Copies of builds go along: a binding may have one whose file is gone.
    async fn copy_builds(&self) -> Result<(), StoreCopyError> {
        let shelf = Shelf::open(&self.database)?;
        let components =
            ComponentsDir::open(self.data_dir.join("components")).map_err(OpenError::from)?;
        if self.is_into_database {
            for digest in components.digests().map_err(OpenError::from)? {
                let bytes = components.read(digest).map_err(OpenError::from)?;
                let signature = components.signature(digest);
                let text = digest.to_string();
                let put = shelf.put(&text, &bytes, signature.as_deref());
                put.await.map_err(OpenError::from)?;
            }
            return Ok(());
        }
        for text in shelf.builds().await.map_err(OpenError::from)? {
            let fetched = shelf.fetch(&text).await.map_err(OpenError::from)?;
            if let (Ok(digest), Some((bytes, signature))) = (text.parse(), fetched) {
                components.keep(digest, &bytes).map_err(OpenError::from)?;
                if let Some(signature) = signature {
                    components.keep_signature(digest, &signature);
                }
            }
        }
        Ok(())
    }
}

/// A path without links, as far as it is there.
fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match there.and_then(|(above, found)| Some(found.join(path.strip_prefix(above).ok()?))) {
        // Where nothing follows, `join` would end it with a slash.
        Some(found) => found.components().collect(),
        None => path,
    }
}

fn need(path: &Path, flag: &'static str) -> Result<(), StoreCopyError> {
    match path.exists() {
        true => Ok(()),
        false => Err(StoreCopyError::NoKey { path: path.to_owned(), flag }),
    }
}

fn copy_key(from: &Path, to: &Path) -> Result<(), OpenError> {
    let copied = fs::read(from).and_then(|key| durable::write(to, &key, 0o600));
    copied.map_err(|error| OpenError::directory("copying a key to", to, error))
}

async fn open_directory(data_dir: &Path) -> Result<SledStore, OpenError> {
    // What is there fits: it is only moved.
    let options = SledOptions { company_bytes: 0, ..SledOptions::default() };
    let path = data_dir.to_owned();
    let opened = memhost_executor::spawn_blocking(move || SledStore::open(&path, options));
    Ok(opened.await.map_err(|error| OpenError::directory("opening", data_dir, error))??)
}
