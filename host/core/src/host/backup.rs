//! A copy of everything that a host has, made while it works, and a data directory from such a copy.
//!
//! The store is as it was at one moment. Files of providers are copied before it and looked at again at that moment; a
//! file that a provider was writing then is as after a crash, which every provider must survive.

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
/// What is copied whole.
const DIRECTORIES: [&str; 3] = ["memory", "components", "plugins"];
/// What opens the rest: readable by its owner only.
const KEYS: [&str; 2] = ["host.key", "admin-token"];
const VAULT_KEY: &str = "vault.key";

/// A request to make a backup.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BackupRequest {
    /// A directory of the host's machine that is not there yet, as an absolute path.
    pub directory: PathBuf,
    /// Whether the key that secrets are encrypted with is in it. Without it, keep that key elsewhere.
    #[serde(default)]
    pub with_vault_key: bool,
}

/// What a backup holds.
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
    /// Where the directory is there already or cannot be written; what was begun is left for whoever looks into it, and
    /// has no manifest.
    pub async fn backup(&self, request: BackupRequest) -> Result<BackupView, ServiceError> {
        if !request.directory.is_absolute() {
            return Err(FieldError::new("directory", "is no absolute path of the host's machine").into());
        }
        let (store, data_dir) = (std::sync::Arc::clone(&self.store), self.data_dir.clone());
        let made_at = self.clock.now();
        let made = tokio::task::spawn_blocking(move || {
            let to = &request.directory;
            fs::create_dir(to).map_err(|error| FieldError::new("directory", format!("{}: {error}", to.display())))?;
            let mut copied: BTreeMap<PathBuf, Seen> = BTreeMap::new();
            copy_changed(&data_dir, to, &mut copied)?;
            let mut again = Ok(());
            let report = store.backup(&to.join(STORE), &mut || again = copy_changed(&data_dir, to, &mut copied))?;
            again?;
            let vault = request.with_vault_key.then_some(VAULT_KEY);
            for name in KEYS.into_iter().chain(vault) {
                if data_dir.join(name).exists() {
                    fs::copy(data_dir.join(name), to.join(name)).map_err(|error| io(name, &error))?;
                }
            }
            let manifest =
                Manifest { made_by: format!("memhost {}", env!("CARGO_PKG_VERSION")), made_at, files: digests(to)? };
            let text =
                serde_json::to_string_pretty(&manifest).map_err(|error| ServiceError::Host(error.to_string()))?;
            // Last: what has a manifest is whole.
            fs::write(to.join(MANIFEST), text).map_err(|error| io(MANIFEST, &error))?;
            Ok(BackupView { directory: to.clone(), store: report, files: copied.len() as u64 })
        });
        made.await.map_err(|error| ServiceError::Host(error.to_string()))?
    }
}

/// How a file was when it was copied.
type Seen = (u64, Option<SystemTime>);

/// Copies what is not copied as it is now, and removes from the copy what is gone.
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
            // Gone since it was found.
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

/// Regular files only: what a provider links to is not the host's to copy.
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
/// What is missing, too much or changed.
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

/// Makes a data directory from a backup. What is wrong with the backup is found before anything is written.
///
/// # Errors
/// Where the backup is not whole, or the directory is not empty.
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
