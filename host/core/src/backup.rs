//! Backup of everything that a host has while it works, and restore into a new data directory.
//!
//! The backup has the store as of one moment. Files of providers are copied before it and compared
//! again at that moment. A file that a provider was writing at that moment is as after a crash,
//! which every provider must survive.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::permissions;
use memhost_files::{Copied, Directory};
use memhost_store::{BackupReport, SledStore, Store};
use memhost_tenancy::ServiceError;
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
/// The mark of a restored data directory: its host is quiet.
const QUIET: &str = "quiet";

/// A request to make a backup.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BackupRequest {
    /// A directory of the host's machine that is not there yet, as an absolute path.
    #[schemars(length(min = 1, max = MAX_PATH_BYTES))]
    pub directory: PathBuf,
    /// Whether the key that secrets are encrypted with is in it. Without it, keep that key
    /// elsewhere.
    #[serde(default)]
    pub with_vault_key: bool,
}

/// The contents of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupView {
    /// Where it is.
    pub directory: PathBuf,
    /// The report about the store.
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

/// Makes a backup while the host works.
///
/// # Errors
/// Where the directory exists already or cannot be written. An incomplete backup is left in
/// place, without a manifest.
pub(crate) async fn backup(
    store: &dyn Store,
    (data_dir, made_at): (PathBuf, Timestamp),
    request: BackupRequest,
) -> Result<BackupView, ServiceError> {
    if request.directory.as_os_str().len() > MAX_PATH_BYTES {
        return Err(
            FieldError::new("directory", format!("is longer than {MAX_PATH_BYTES} bytes")).into()
        );
    }
    if !request.directory.is_absolute() {
        return Err(
            FieldError::new("directory", "is no absolute path of the host's machine").into()
        );
    }
    let to = request.directory;
    let directory = to.clone();
    let first =
        memhost_executor::spawn_blocking(move || Copy::begin(data_dir, directory)?.changed());
    let copy = first.await.map_err(ServiceError::host)??;
    // Files that have changed since are copied again while nothing is written to the store.
    let (send, again) = tokio::sync::oneshot::channel();
    let at_the_end = Box::new(move || drop(send.send(copy.changed())));
    let store = store.backup(&to.join(STORE), at_the_end).await?;
    let copy = again.await.map_err(ServiceError::host)??;
    let finish = move || copy.finish(store, request.with_vault_key, made_at);
    memhost_executor::spawn_blocking(finish).await.map_err(ServiceError::host)?
}

/// The copy of a data directory's files into a backup.
struct Copy {
    from: PathBuf,
    to: Directory,
    directory: PathBuf,
    copied: Copied,
}

impl Copy {
    /// Makes the backup's directory.
    fn begin(from: PathBuf, directory: PathBuf) -> Result<Self, ServiceError> {
        let mut builder = fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let made = builder.create(&directory).and_then(|()| Directory::open(&directory));
        let wrong =
            |error| FieldError::new("directory", format!("{}: {error}", directory.display()));
        let to = made.map_err(wrong)?;
        Ok(Self { from, to, directory, copied: Copied::default() })
    }

    /// Copies files that are new or have changed, and removes from the copy files that no longer
    /// exist.
    fn changed(mut self) -> Result<Self, ServiceError> {
        let mut copied = Copied::default();
        for name in DIRECTORIES {
            copy_directory(&self.from, &self.to, name, &self.copied, &mut copied)?;
        }
        self.copied = copied;
        Ok(self)
    }

    /// Adds the keys and the manifest.
    fn finish(
        self,
        store: BackupReport,
        with_vault_key: bool,
        made_at: Timestamp,
    ) -> Result<BackupView, ServiceError> {
        let vault = with_vault_key.then_some(VAULT_KEY);
        for name in KEYS.into_iter().chain(vault) {
            copy_key(&self.from, &self.to, name)?;
        }
        if self.copied.is_cut {
            let most = memhost_files::MAX_DEPTH;
            tracing::warn!(
                most,
                "directories of providers that are nested deeper are not in the backup"
            );
        }
        let made_by = format!("memhost {}", env!("CARGO_PKG_VERSION"));
        memhost_files::durable::sync_tree(&self.directory)
            .map_err(|error| io("the backup", &error))?;
        let manifest = Manifest { made_by, made_at, files: digests(&self.to)? };
        let text = serde_json::to_string_pretty(&manifest).map_err(ServiceError::host)?;
        // Last: a backup with a manifest is complete.
        memhost_files::durable::write(&self.directory.join(MANIFEST), text.as_bytes(), 0o600)
            .map_err(|error| io(MANIFEST, &error))?;
        // The backup's own name is in the directory above it.
        let above = self.directory.parent().unwrap_or(Path::new("/"));
        memhost_files::durable::sync_directory(above)
            .map_err(|error| io("the backup's directory", &error))?;
        Ok(BackupView { files: self.copied.files.len() as u64, directory: self.directory, store })
    }
}

/// Copies one of the host's directories, if it is there. The operator may have put a link in its
/// place.
fn copy_directory(
    from: &Path,
    to: &Directory,
    name: &str,
    known: &Copied,
    copied: &mut Copied,
) -> Result<(), ServiceError> {
    let done = match Directory::open(&from.join(name)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        found => found.and_then(|from| from.copy_changed(name, to, known, copied)),
    };
    done.map_err(|error| io(name, &error))
}

/// Copies a key file of the host, if there is one.
fn copy_key(from: &Path, to: &Directory, name: &str) -> Result<(), ServiceError> {
    let done = match fs::File::open(from.join(name)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        found => found.and_then(|mut key| {
            std::io::copy(&mut key, &mut to.create(OsStr::new(name))?).map(drop)
        }),
    };
    done.map_err(|error| io(name, &error))
}

/// The digest of every regular file, by its path.
fn digests(directory: &Directory) -> Result<BTreeMap<String, String>, ServiceError> {
    let found = directory.digests().map_err(|error| io("the backup", &error))?;
    Ok(found.into_iter().map(|(path, digest)| (path.display().to_string(), digest)).collect())
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
        ServiceError::Host(format!(
            "{path} is not a whole backup: {message}; use another one, nothing was restored"
        ))
    };
    let text = fs::read_to_string(backup.join(MANIFEST))
        .map_err(|error| wrong(format!("{MANIFEST}: {error}")))?;
    let manifest: Manifest =
        serde_json::from_str(&text).map_err(|error| wrong(format!("{MANIFEST}: {error}")))?;
    let directory = Directory::open(backup).map_err(|error| wrong(error.to_string()))?;
    let mut found = digests(&directory)?;
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

/// Whether a data directory was restored from a backup and nobody has ended its quiet since: its
/// host delivers nothing, runs no jobs and sends no request to another system.
pub(crate) fn is_quiet(data_dir: &Path) -> bool {
    data_dir.join(QUIET).exists()
}

/// Ends the quiet of a restored data directory, from the next opening on.
///
/// # Errors
/// Where its mark cannot be removed.
pub fn end_quiet(data_dir: &Path) -> Result<(), ServiceError> {
    match fs::remove_file(data_dir.join(QUIET)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io(QUIET, &error)),
        _ => Ok(()),
    }
}

/// Makes a data directory from a backup. A damaged backup is refused before anything is written.
/// The directory is quiet until [`end_quiet`].
///
/// # Errors
/// Where the backup is incomplete, or the directory is not empty.
pub fn restore_backup(backup: &Path, data_dir: &Path) -> Result<usize, ServiceError> {
    let files = check_backup(backup)?;
    SledStore::restore(&backup.join(STORE), data_dir)?;
    let to = Directory::open(data_dir).map_err(|error| io("the data directory", &error))?;
    let from = Directory::open(backup).map_err(|error| io("the backup", &error))?;
    // Only what the manifest was compared with: a link in a backup may lead to anything of this
    // machine.
    for name in DIRECTORIES {
        let found = from.find_below(OsStr::new(name)).map_err(|error| io(name, &error))?;
        let copied = found
            .map(|found| found.copy_changed(name, &to, &Copied::default(), &mut Copied::default()));
        copied.transpose().map_err(|error| io(name, &error))?;
    }
    for name in KEYS.into_iter().chain([VAULT_KEY]) {
        let key = from.file(OsStr::new(name)).map_err(|error| io(name, &error))?;
        let copied = key.map(|mut key| std::io::copy(&mut key, &mut to.create(OsStr::new(name))?));
        copied.transpose().map_err(|error: std::io::Error| io(name, &error))?;
    }
    // Nobody has said yet whether this is a copy for a test or the host from now on.
    memhost_files::durable::write(&data_dir.join(QUIET), b"", 0o600)
        .map_err(|error| io(QUIET, &error))?;
    // The store's library makes its files with the process's umask.
    permissions::tighten(data_dir).map_err(|error| io("the data directory", &error))?;
    memhost_files::durable::sync_tree(data_dir)
        .map_err(|error| io("the data directory", &error))?;
    Ok(files)
}
