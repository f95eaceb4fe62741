//! Admitted and refused components. A refused file is shown with its reason until it changes.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Order};
use std::time::Instant;

use parking_lot::RwLock;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::broadcast;

use crate::plugins::change::{PluginChange, PluginOutcome};
use crate::plugins::error::PluginError;
use crate::plugins::files::{self, Fingerprint, SETTLE};
use crate::plugins::kept::KeptComponents;
use crate::plugins::trust::{Signed, Trust};
use memhost_sandbox::{CacheKey, Component, Sandbox};
use memhost_types::{Digest, ProviderKey, VersionChoice};

/// Components that are admitted at the same time.
const PARALLEL_ADMISSIONS: usize = 2;
/// The most changes that wait for a follower.
const CHANGES: usize = 256;

/// The source of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind", content = "path")]
pub enum PluginSource {
    /// This binary.
    Builtin,
    /// A file of the plugins directory.
    File(PathBuf),
    /// A copy. The file is gone, and the copy serves the bindings that the file served.
    Kept,
}

/// An admitted build of a provider.
#[derive(Debug, Clone)]
pub struct Plugin {
    /// Its source.
    pub source: PluginSource,
    /// The component.
    pub component: Component,
    /// Whose it is.
    pub signed: Signed,
    /// Of two builds of one version the one that was written later is the newer.
    written: (i64, i64),
}

impl Plugin {
    /// The digest that identifies the build.
    pub fn digest(&self) -> Digest {
        self.component.inspection().digest
    }

    /// The provider's version.
    pub fn version(&self) -> &semver::Version {
        &self.component.description().version
    }

    /// Whether a binding that makes this choice may be served by it.
    pub(crate) fn is_allowed_by(&self, choice: &VersionChoice) -> bool {
        choice.allows(self.version(), self.digest())
    }

    /// Whether it replaces another build of its provider: it has a higher version, or the same version, its file is there,
    /// and it was written later.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        match self.version().cmp(other.version()) {
            Ordering::Greater => true,
            Ordering::Equal => {
                self.is_present()
                    && self.digest() != other.digest()
                    && (!other.is_present() || self.written > other.written)
            }
            Ordering::Less => false,
        }
    }

    /// Whether its file is there. Only then may it replace another build.
    pub fn is_present(&self) -> bool {
        self.source != PluginSource::Kept
    }
}

/// A file that was refused.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedPlugin {
    /// Which file.
    pub path: PathBuf,
    /// Why, and what to do about it.
    pub reason: String,
}

/// The directories of providers, and which of them are trusted.
#[derive(Debug, Clone)]
pub struct PluginsOptions {
    /// The plugins directory. It must exist.
    pub directory: PathBuf,
    /// The copies of admitted components. It is made where it is missing.
    pub kept: PathBuf,
    /// Which files are trusted.
    pub trust: Trust,
}

/// All providers of a host.
pub struct Plugins {
    sandbox: Sandbox,
    cache: CacheKey,
    pub(crate) directory: PathBuf,
    kept: KeptComponents,
    trust: Arc<Trust>,
    admitted: RwLock<BTreeMap<ProviderKey, Vec<Plugin>>>,
    files: tokio::sync::Mutex<BTreeMap<PathBuf, SeenFile>>,
    refused: RwLock<BTreeMap<PathBuf, String>>,
    generation: AtomicU64,
    changes: broadcast::Sender<PluginChange>,
}

/// What is known of a file.
struct SeenFile {
    fingerprint: Fingerprint,
    /// When it was first seen like that; none once it has been looked at.
    waits_since: Option<Instant>,
}

impl Plugins {
    /// Admits the built-in provider and every `.wasm` file of the directory.
    ///
    /// # Errors
    /// Where the built-in provider is not admitted or a directory cannot be read. A bad file is no error.
    pub async fn open(sandbox: &Sandbox, cache: CacheKey, options: PluginsOptions) -> Result<Self, PluginError> {
        // An unreadable directory at the start is a wrong option; later it is tried again.
        files::list(&options.directory)?;
        let component = Component::admit(sandbox, memhost_builtin::LOCAL_MARKDOWN.to_vec(), Some(&cache)).await?;
        let plugins = Self {
            sandbox: sandbox.clone(),
            cache,
            directory: options.directory,
            kept: KeptComponents::open(options.kept)?,
            trust: Arc::new(options.trust),
            admitted: RwLock::default(),
            files: tokio::sync::Mutex::default(),
            refused: RwLock::default(),
            generation: AtomicU64::new(1),
            changes: broadcast::Sender::new(CHANGES),
        };
        plugins.insert(Plugin { source: PluginSource::Builtin, component, signed: Signed::No, written: (0, 0) });
        plugins.scan_directory(true).await;
        Ok(plugins)
    }

    /// Increases whenever the available builds change.
    pub fn generation(&self) -> u64 {
        self.generation.load(Order::Acquire)
    }

    /// Changes of the directory's files from now on.
    pub fn changes(&self) -> broadcast::Receiver<PluginChange> {
        self.changes.subscribe()
    }

    fn publish(&self, path: &Path, outcome: PluginOutcome) {
        // An error means that nobody follows.
        let _ = self.changes.send(PluginChange { path: path.to_owned(), outcome });
    }

    /// Reads the directory now. Answers false where a file is being written and must be read again soon.
    pub async fn scan(&self) -> bool {
        self.scan_directory(false).await
    }

    async fn scan_directory(&self, is_first: bool) -> bool {
        let directory = self.directory.clone();
        let mut seen = self.files.lock().await;
        let listed = match tokio::task::spawn_blocking(move || files::list(&directory)).await {
            Ok(Ok(listed)) => listed,
            Ok(Err(error)) => {
                // Builds stay where the directory cannot be read for a moment.
                tracing::warn!(%error, "the plugins directory cannot be read");
                return true;
            }
            Err(_) => return true,
        };
        let names: HashSet<&PathBuf> = listed.iter().map(|(path, _)| path).collect();
        let gone: Vec<PathBuf> = seen.keys().filter(|path| !names.contains(path)).cloned().collect();
        for path in gone {
            seen.remove(&path);
            self.forget_file(&path, None);
            self.publish(&path, PluginOutcome::Gone);
        }
        let (mut ready, mut all_settled) = (Vec::new(), true);
        for (path, fingerprint) in listed {
            match seen.get(&path).filter(|known| known.fingerprint == fingerprint).map(|known| known.waits_since) {
                Some(None) => {}
                // Unchanged for a while: it is complete.
                Some(Some(since)) if since.elapsed() >= SETTLE => ready.push((path, fingerprint)),
                Some(Some(_)) => all_settled = false,
                None if is_first => ready.push((path, fingerprint)),
                None => {
                    all_settled = false;
                    // The reason was about the file as it was.
                    self.refused.write().remove(&path);
                    seen.insert(path, SeenFile { fingerprint, waits_since: Some(Instant::now()) });
                }
            }
        }
        for (path, fingerprint) in self.admit_all(ready).await {
            let Some(fingerprint) = fingerprint else {
                all_settled = false;
                continue;
            };
            seen.insert(path, SeenFile { fingerprint, waits_since: None });
        }
        all_settled
    }

    /// Admits files, a few at a time: admission reads and hashes, and compiles where the cache is cold.
    async fn admit_all(&self, files: Vec<(PathBuf, Fingerprint)>) -> Vec<(PathBuf, Option<Fingerprint>)> {
        let mut pending = files.into_iter();
        let mut admissions = tokio::task::JoinSet::new();
        let mut looked_at = Vec::new();
        loop {
            while admissions.len() < PARALLEL_ADMISSIONS
                && let Some((path, listed)) = pending.next()
            {
                let (sandbox, cache, kept) = (self.sandbox.clone(), self.cache.clone(), self.kept.clone());
                let trust = Arc::clone(&self.trust);
                admissions.spawn(async move {
                    let admitted = admit_file(&sandbox, &cache, kept, trust, &path).await;
                    (path, listed, admitted)
                });
            }
            let Some(joined) = admissions.join_next().await else { return looked_at };
            let Ok((path, listed, admitted)) = joined else {
                tracing::error!("an admission ended early");
                continue;
            };
            let fingerprint = match admitted {
                Ok((component, signed)) => {
                    self.register(path.clone(), listed, component, signed);
                    Some(listed)
                }
                Err(PluginError::BeingWritten { .. }) => None,
                Err(error) => {
                    self.refuse(path.clone(), &error);
                    Some(listed)
                }
            };
            looked_at.push((path, fingerprint));
        }
    }

    fn register(&self, path: PathBuf, fingerprint: Fingerprint, component: Component, signed: Signed) {
        let key = &component.description().provider_key;
        if key.as_str() == memhost_builtin::LOCAL_MARKDOWN_KEY {
            return self.refuse(path, &PluginError::BuiltinKey { key: memhost_builtin::LOCAL_MARKDOWN_KEY });
        }
        let (digest, version) = (component.inspection().digest, component.description().version.clone());
        tracing::info!(path = %path.display(), provider = %key, %version, %digest, "a plugin was admitted");
        self.forget_file(&path, Some(digest));
        let admitted = PluginOutcome::Admitted { provider_key: key.clone(), version, digest };
        self.publish(&path, admitted);
        let written = fingerprint.modified();
        self.insert(Plugin { source: PluginSource::File(path), component, signed, written });
    }

    fn insert(&self, plugin: Plugin) {
        let mut admitted = self.admitted.write();
        let builds = admitted.entry(plugin.component.description().provider_key.clone()).or_default();
        match builds.iter_mut().find(|build| build.digest() == plugin.digest()) {
            // The same bytes under another name, or a file that came back.
            Some(build) if build.is_present() => build.signed = plugin.signed,
            Some(build) => *build = plugin,
            None => builds.push(plugin),
        }
        builds.sort_by(|a, b| {
            let order = |build: &Plugin| (build.version().clone(), build.written);
            order(b).cmp(&order(a))
        });
        drop(admitted);
        self.generation.fetch_add(1, Order::AcqRel);
    }

    /// A file was changed or removed: its build, unless it has this digest, serves only the bindings that it served.
    fn forget_file(&self, path: &Path, stays: Option<Digest>) {
        self.refused.write().remove(path);
        let mut admitted = self.admitted.write();
        let mut changed = false;
        for build in admitted.values_mut().flatten() {
            let is_of_file = matches!(&build.source, PluginSource::File(file) if file == path);
            if is_of_file && Some(build.digest()) != stays {
                build.source = PluginSource::Kept;
                changed = true;
                let description = build.component.description();
                let (provider, version) = (&description.provider_key, &description.version);
                tracing::warn!(path = %path.display(), %provider, %version, "a plugin's file is gone");
            }
        }
        drop(admitted);
        if changed {
            self.generation.fetch_add(1, Order::AcqRel);
        }
    }

    fn refuse(&self, path: PathBuf, error: &PluginError) {
        let reason = error.to_string();
        tracing::warn!(path = %path.display(), %reason, "a plugin was refused");
        self.forget_file(&path, None);
        self.publish(&path, PluginOutcome::Refused { reason: reason.clone() });
        self.refused.write().insert(path, reason);
    }

    /// All builds of a provider, newest first.
    pub fn builds(&self, key: &ProviderKey) -> Vec<Plugin> {
        self.admitted.read().get(key).cloned().unwrap_or_default()
    }

    /// One build, from the copies if its file is gone.
    ///
    /// # Errors
    /// Where there is no such build, or its copy is not admitted.
    pub async fn build(&self, digest: Digest) -> Result<Plugin, PluginError> {
        let known = self.admitted.read().values().flatten().find(|build| build.digest() == digest).cloned();
        if let Some(build) = known {
            return Ok(build);
        }
        let kept = self.kept.clone();
        let read = tokio::task::spawn_blocking(move || kept.read(digest)).await;
        let bytes = read.map_err(|error| PluginError::io("reading", Path::new("a copy"), &error))??;
        let component = Component::admit(&self.sandbox, bytes, Some(&self.cache)).await?;
        let plugin = Plugin { source: PluginSource::Kept, component, signed: Signed::No, written: (0, 0) };
        self.insert(plugin.clone());
        Ok(plugin)
    }

    /// Removes the copies of builds that are neither in the directory nor in this set.
    ///
    /// # Errors
    /// Where the copies cannot be read or removed.
    pub fn keep_only(&self, mut needed: HashSet<Digest>) -> Result<(), PluginError> {
        needed.extend(self.admitted.read().values().flatten().map(Plugin::digest));
        self.kept.keep_only(&needed)
    }

    /// All builds of all providers, by key, newest first.
    pub fn list(&self) -> Vec<Plugin> {
        self.admitted.read().values().flatten().cloned().collect()
    }

    /// The files that were refused.
    pub fn refused(&self) -> Vec<RefusedPlugin> {
        let refused = self.refused.read();
        refused.iter().map(|(path, reason)| RefusedPlugin { path: path.clone(), reason: reason.clone() }).collect()
    }

    /// Admits one file on its own, for `plugin inspect`.
    ///
    /// # Errors
    /// Why it is refused.
    pub async fn inspect(sandbox: &Sandbox, path: &Path) -> Result<Component, PluginError> {
        let (bytes, _) = read_file(Arc::default(), path).await?;
        Ok(Component::admit(sandbox, bytes, None).await?)
    }
}

/// Reads a file and checks its signature, before its content is used.
async fn read_file(trust: Arc<Trust>, path: &Path) -> Result<(Vec<u8>, Signed), PluginError> {
    let owned = path.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let bytes = files::read(&owned)?;
        let bytes = bytes.ok_or_else(|| PluginError::BeingWritten { path: owned.display().to_string() })?;
        let signed = trust.check(&owned, &bytes)?;
        Ok((bytes, signed))
    });
    read.await.map_err(|error| PluginError::io("reading", path, &error))?
}

async fn admit_file(
    sandbox: &Sandbox,
    cache: &CacheKey,
    kept: KeptComponents,
    trust: Arc<Trust>,
    path: &Path,
) -> Result<(Component, Signed), PluginError> {
    let (bytes, signed) = read_file(trust, path).await?;
    let copy = bytes.clone();
    let component = Component::admit(sandbox, bytes, Some(cache)).await?;
    let digest = component.inspection().digest;
    let written = tokio::task::spawn_blocking(move || kept.keep(digest, &copy)).await;
    if let Ok(Err(error)) = written {
        tracing::warn!(%error, "a plugin has no copy: it stops serving when its file is removed");
    }
    Ok((component, signed))
}
