//! Backup of everything that a host has while it works, and restore into a new data directory.
//!
//! The backup has the store as of one moment. Files of providers are copied before it and compared again at that moment. A
//! file that a provider was writing at that moment is as after a crash, which every provider must survive.

use async_recursion::async_recursion as boxed;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Service;
use crate::error::ServiceError;
use memhost_store::{BackupReport, SledStore};
use memhost_types::FieldError;

const STORE: &str = "store.backup";
const MANIFEST: &str = "MANIFEST.json";
/// The longest path of a backup, in bytes: no system takes a longer one.
const MAX_PATH_BYTES: usize = 4_096;

/// Directories that are copied whole.
const DIRECTORIES: [&str; 3] = ["memory", "components", "plugins"];
/// Key files: readable by their owner only.
const KEYS: [&str; 2] = ["host.key", "admin-token"];
const VAULT_KEY: &str = "vault.key";

/// A request to make a backup.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BackupRequest {
    /// A directory of the host's machine that is not there yet, as an absolute path.
    #[schemars(length(min = 1, max = MAX_PATH_BYTES))]
    pub directory: PathBuf,
    /// Whether the key that secrets are encrypted with is in it. Without it, keep that key elsewhere.
    #[serde(default)]
    pub with_vault_key: bool,
}

/// What a backup contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupView {
    /// Where it is.
    pub directory: PathBuf,
    /// Of the store.
    #[serde(flatten)]
    pub store: BackupReport,
    /// Files of providers and builds.
    pub files: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    made_by: String,
    made_at: Timestamp,
    /// BLAKE3 of every file, by its path within the backup.
    files: BTreeMap<String, String>,
}

impl Service {
    /// Makes a backup while the host works.
    ///
    /// # Errors
    /// Where the directory exists already or cannot be written. An incomplete backup is left in place, without a manifest.
    #[boxed]
    pub async fn backup(&self, request: BackupRequest) -> Result<BackupView, ServiceError> {
        if request.directory.as_os_str().len() > MAX_PATH_BYTES {
            return Err(FieldError::new("directory", format!("is longer than {MAX_PATH_BYTES} bytes")).into());
        }
        if !request.directory.is_absolute() {
            return Err(FieldError::new("directory", "is no absolute path of the host's machine").into());
        }
        let (data_dir, made_at) = (self.data_dir.clone(), self.clock.now());
        let to = request.directory;
        let copy = Copy { from: data_dir, to: to.clone(), copied: BTreeMap::new() };
        let first = tokio::task::spawn_blocking(move || {
            let mut directory = fs::DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut directory, 0o700);
            directory
                .create(&copy.to)
                .map_err(|error| FieldError::new("directory", format!("{}: {error}", copy.to.display())))?;
            copy.changed()
        });
        let copy = first.await.map_err(ServiceError::host)??;
        // Files that have changed since are copied again while nothing is written to the store.
        let (send, again) = tokio::sync::oneshot::channel();
        let at_the_end = Box::new(move || drop(send.send(copy.changed())));
        let store = self.store.backup(&to.join(STORE), at_the_end).await?;
        let copy = again.await.map_err(ServiceError::host)??;
        let finish = move || copy.finish(store, request.with_vault_key, made_at);
        tokio::task::spawn_blocking(finish).await.map_err(ServiceError::host)?
    }
}

/// The copy of a data directory's files into a backup.
struct Copy {
    from: PathBuf,
    to: PathBuf,
    /// The files that are in the backup already.
    copied: BTreeMap<PathBuf, Seen>,
}

impl Copy {
    /// Copies files that are new or have changed.
    fn changed(mut self) -> Result<Self, ServiceError> {
        copy_changed(&self.from, &self.to, &mut self.copied)?;
        Ok(self)
    }

    /// Adds the keys and the manifest.
    fn finish(self, store: BackupReport, with_vault_key: bool, made_at: Timestamp) -> Result<BackupView, ServiceError> {
        let vault = with_vault_key.then_some(VAULT_KEY);
        for name in KEYS.into_iter().chain(vault) {
            if self.from.join(name).exists() {
                fs::copy(self.from.join(name), self.to.join(name)).map_err(|error| io(name, &error))?;
            }
        }
        let made_by = format!("memhost {}", env!("CARGO_PKG_VERSION"));
        let manifest = Manifest { made_by, made_at, files: digests(&self.to)? };
        let text = serde_json::to_string_pretty(&manifest).map_err(ServiceError::host)?;
        // Last: a backup with a manifest is complete.
        fs::write(self.to.join(MANIFEST), text).map_err(|error| io(MANIFEST, &error))?;
        Ok(BackupView { files: self.copied.len() as u64, directory: self.to, store })
    }
}

/// The size and the time of a file when it was copied.
type Seen = (u64, Option<SystemTime>);

/// Copies files that are new or have changed, and removes from the copy files that no longer exist.
fn copy_changed(from: &Path, to: &Path, copied: &mut BTreeMap<PathBuf, Seen>) -> Result<(), ServiceError> {
    let mut found = BTreeMap::new();
    for name in DIRECTORIES {
        walk(&from.join(name), &mut found).map_err(|error| io(name, &error))?;
    }
    for (path, seen) in &found {
        if copied.get(path) == Some(seen) {
            continue;
        }
        let target = to.join(path.strip_prefix(from).unwrap_or(path));
        let copy = || {
            fs::create_dir_all(target.parent().unwrap_or(to))?;
            fs::copy(path, &target)
        };
        match copy() {
            Ok(_) => {}
            // Removed since it was found.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(io(&path.display().to_string(), &error)),
        }
    }
    for path in copied.keys().filter(|path| !found.contains_key(*path)) {
        drop(fs::remove_file(to.join(path.strip_prefix(from).unwrap_or(path))));
    }
    *copied = found;
    Ok(())
}

/// Lists regular files only: the host does not copy what a provider links to.
fn walk(directory: &Path, found: &mut BTreeMap<PathBuf, Seen>) -> std::io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_dir() => walk(&path, found)?,
            Ok(metadata) if metadata.is_file() => {
                found.insert(path, (metadata.len(), metadata.modified().ok()));
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn digests(directory: &Path) -> Result<BTreeMap<String, String>, ServiceError> {
    let mut found = BTreeMap::new();
    walk(directory, &mut found).map_err(|error| io("the backup", &error))?;
    let mut digests = BTreeMap::new();
    for path in found.into_keys() {
        let name = path.strip_prefix(directory).unwrap_or(&path).display().to_string();
        let mut hasher = blake3::Hasher::new();
        let mut file = fs::File::open(&path).map_err(|error| io(&name, &error))?;
        std::io::copy(&mut file, &mut hasher).map_err(|error| io(&name, &error))?;
        digests.insert(name, hasher.finalize().to_hex().to_string());
    }
    Ok(digests)
}

fn io(what: &str, error: &dyn std::fmt::Display) -> ServiceError {
    ServiceError::Host(format!("{what}: {error}"))
}

/// Compares a backup with its manifest; answers how many files it has.
///
/// # Errors
/// Where a file is missing, unknown or changed.
pub fn check_backup(backup: &Path) -> Result<usize, ServiceError> {
    let wrong = |message: String| {
        let path = backup.display();
        ServiceError::Host(format!("{path} is not a whole backup: {message}; use another one, nothing was restored"))
    };
    let text = fs::read_to_string(backup.join(MANIFEST)).map_err(|error| wrong(format!("{MANIFEST}: {error}")))?;
    let manifest: Manifest = serde_json::from_str(&text).map_err(|error| wrong(format!("{MANIFEST}: {error}")))?;
    let mut found = digests(backup)?;
    found.remove(MANIFEST);
    for (name, digest) in &manifest.files {
        match found.remove(name) {
            Some(found) if found == *digest => {}
            Some(_) => return Err(wrong(format!("{name} was changed"))),
            None => return Err(wrong(format!("{name} is missing"))),
        }
    }
    match found.into_keys().next() {
        Some(name) => Err(wrong(format!("{name} does not belong to it"))),
        None => Ok(manifest.files.len()),
    }
}

/// Makes a data directory from a backup. A damaged backup is refused before anything is written.
///
/// # Errors
/// Where the backup is incomplete, or the directory is not empty.
pub fn restore_backup(backup: &Path, data_dir: &Path) -> Result<usize, ServiceError> {
    let files = check_backup(backup)?;
    SledStore::restore(&backup.join(STORE), data_dir)?;
    let mut found = BTreeMap::new();
    for name in DIRECTORIES {
        walk(&backup.join(name), &mut found).map_err(|error| io(name, &error))?;
    }
    let keys = KEYS.into_iter().chain([VAULT_KEY]).map(|name| backup.join(name)).filter(|path| path.exists());
    for path in found.into_keys().chain(keys) {
        let name = path.strip_prefix(backup).unwrap_or(&path);
        let target = data_dir.join(name);
        fs::create_dir_all(target.parent().unwrap_or(data_dir))
            .and_then(|()| fs::copy(&path, &target))
            .map_err(|error| io(&name.display().to_string(), &error))?;
    }
    Ok(files)
}
