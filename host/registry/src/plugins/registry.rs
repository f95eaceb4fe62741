//! Admitted and refused components. A refused file is shown with its reason until it changes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::{broadcast, watch};

use crate::plugins::admissions::{Admissions, read_alone};
use crate::plugins::components::ComponentsDir;
use crate::plugins::error::PluginError;
use crate::plugins::files::{self, Fingerprint};
use crate::plugins::plugin::{Build as _, Plugin, PluginSource, RefusedPlugin};
use crate::plugins::progress::{AbortOnDrop, Progress, SeenFile};
use crate::plugins::trust::{Signed, Trust};
use memhost_sandbox::{CacheKey, Component, Sandbox};
use memhost_types::{Digest, PluginChange, PluginOutcome, ProviderKey};

/// How long a call waits for a copy. Loading one that was compiled before takes milliseconds.
const WAIT: Duration = Duration::from_secs(3);

/// The most changes that wait for a follower.
const CHANGES: usize = 256;

/// The directories of providers, and which of them are trusted.
#[derive(Debug, Clone)]
pub struct PluginsOptions {
    /// The plugins directory. It must exist.
    pub directory: PathBuf,
    /// A second directory, of what other hosts have brought. It must exist.
    pub of_others: Option<PathBuf>,
    /// The copies of admitted components. It is made where it is missing.
    pub components: PathBuf,
    /// Which files are trusted.
    pub trust: Trust,
}

/// A copy that is being admitted: once, for all that ask for it.
struct Loading {
    outcome: watch::Receiver<Option<Result<Plugin, String>>>,
    _task: AbortOnDrop,
}

/// All providers of a host.
pub struct Plugins {
    pub(super) admissions: Admissions,
    pub(super) directories: Vec<PathBuf>,
    components: ComponentsDir,
    admitted: RwLock<BTreeMap<ProviderKey, Vec<Plugin>>>,
    /// The state of each file. A file that is dropped from it is no longer admitted.
    pub(super) files: tokio::sync::Mutex<BTreeMap<PathBuf, SeenFile>>,
    loading: Mutex<HashMap<Digest, Loading>>,
    pub(super) refused: RwLock<BTreeMap<PathBuf, String>>,
    pub(super) progress: Arc<Progress>,
    generation: AtomicU64,
    changes: broadcast::Sender<PluginChange>,
}

impl Plugins {
    /// Admits the built-in provider. [`Plugins::begin`] admits the files of the directory.
    ///
    /// # Errors
    /// Where the built-in provider is not admitted or a directory cannot be read.
    pub async fn open(
        sandbox: &Sandbox,
        cache: CacheKey,
        options: PluginsOptions,
    ) -> Result<Arc<Self>, PluginError> {
        // An unreadable directory at the start is a wrong option; later it is tried again.
        for directory in std::iter::once(&options.directory).chain(&options.of_others) {
            files::list(directory)?;
        }
        let unpacked = memhost_executor::spawn_blocking(memhost_builtin::local_markdown).await;
        let builtin = unpacked.map_err(std::io::Error::other).and_then(|unpacked| unpacked);
        let builtin = builtin.map_err(|error| PluginError::Io {
            action: "unpacking",
            what: "the built-in provider of this binary".to_owned(),
            message: error.to_string(),
        })?;
        let component = Component::admit_own(sandbox, builtin, Some(&cache)).await?;
        let plugins = Self::without_builtin(sandbox, cache, options)?;
        plugins.insert(Plugin {
            source: PluginSource::Builtin,
            component,
            signed: Signed::No,
            written: (0, 0),
        });
        Ok(plugins)
    }

    /// Admits nothing yet, and compiles nothing.
    pub(crate) fn without_builtin(
        sandbox: &Sandbox,
        cache: CacheKey,
        options: PluginsOptions,
    ) -> Result<Arc<Self>, PluginError> {
        let components = ComponentsDir::open(options.components)?;
        let trust = Arc::new(options.trust);
        Ok(Arc::new(Self {
            admissions: Admissions::new(sandbox.clone(), cache, components.clone(), trust),
            directories: [options.directory].into_iter().chain(options.of_others).collect(),
            components,
            admitted: RwLock::default(),
            files: tokio::sync::Mutex::default(),
            loading: Mutex::default(),
            refused: RwLock::default(),
            progress: Arc::default(),
            generation: AtomicU64::new(1),
            changes: broadcast::Sender::new(CHANGES),
        }))
    }

    /// Increases whenever the available builds change.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Changes of the directory's files from now on.
    pub fn changes(&self) -> broadcast::Receiver<PluginChange> {
        self.changes.subscribe()
    }

    pub(super) fn publish(&self, path: &Path, outcome: PluginOutcome) {
        // An error means that nobody follows.
        let _ = self.changes.send(PluginChange { path: path.to_owned(), outcome });
    }

    pub(super) fn register(
        &self,
        path: PathBuf,
        fingerprint: Fingerprint,
        component: Component,
        signed: Signed,
    ) {
        let key = &component.description().provider_key;
        if key.as_str() == memhost_builtin::LOCAL_MARKDOWN_KEY {
            return self.refuse(
                path,
                &PluginError::BuiltinKey { key: memhost_builtin::LOCAL_MARKDOWN_KEY },
            );
        }
        let (digest, version) =
            (component.inspection().digest, component.description().version.clone());
        tracing::info!(path = %path.display(), provider = %key, %version, %digest, "a plugin was \
            admitted");
        self.forget_file(&path, Some(digest));
        let admitted = PluginOutcome::Admitted { provider_key: key.clone(), version, digest };
        self.publish(&path, admitted);
        let written = fingerprint.modified();
        self.insert(Plugin { source: PluginSource::File(path), component, signed, written });
    }

    fn insert(&self, plugin: Plugin) {
        let mut admitted = self.admitted.write();
        let builds =
            admitted.entry(plugin.component.description().provider_key.clone()).or_default();
        match builds.iter_mut().find(|build| build.digest() == plugin.digest()) {
            // The same bytes under another name, or a file that came back.
            Some(build) if build.is_present() && plugin.is_present() => {
                build.signed = plugin.signed;
            }
            // A copy, and its file has come back meanwhile.
            Some(build) if build.is_present() => {}
            Some(build) => *build = plugin,
            None => builds.push(plugin),
        }
        builds.sort_by(|a, b| {
            let order = |build: &Plugin| (build.version().clone(), build.written);
            order(b).cmp(&order(a))
        });
        drop(admitted);
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// A file was changed or removed: its build, unless it has this digest, serves only the
    /// bindings that it served.
    pub(super) fn forget_file(&self, path: &Path, stays: Option<Digest>) {
        self.refused.write().remove(path);
        let mut admitted = self.admitted.write();
        let mut changed = false;
        for build in admitted.values_mut().flatten() {
            let is_of_file = matches!(&build.source, PluginSource::File(file) if file == path);
            if is_of_file && Some(build.digest()) != stays {
                build.source = PluginSource::Copy;
                changed = true;
                let description = build.component.description();
                let (provider, version) = (&description.provider_key, &description.version);
                tracing::warn!(path = %path.display(), %provider, %version, "a plugin's file is \
                    gone");
            }
        }
        drop(admitted);
        if changed {
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
    }

    pub(super) fn refuse(&self, path: PathBuf, error: &PluginError) {
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
    /// Where there is no such build, its copy is not admitted, or is being compiled.
    pub async fn build(self: &Arc<Self>, digest: Digest) -> Result<Plugin, PluginError> {
        let known =
            self.admitted.read().values().flatten().find(|build| build.digest() == digest).cloned();
        if let Some(build) = known {
            return Ok(build);
        }
        let mut outcome = {
            let mut loading = self.loading.lock();
            loading.entry(digest).or_insert_with(|| self.load(digest)).outcome.clone()
        };
        let found = tokio::time::timeout(WAIT, outcome.wait_for(Option::is_some)).await;
        let Ok(found) = found else { return Err(PluginError::Admitting { digest }) };
        match found.as_deref() {
            Ok(Some(Ok(plugin))) => Ok(plugin.clone()),
            Ok(Some(Err(reason))) => Err(PluginError::Copy { digest, reason: reason.clone() }),
            _ => Err(PluginError::Admitting { digest }),
        }
    }

    fn load(self: &Arc<Self>, digest: Digest) -> Loading {
        let (plugins, admissions) = (Arc::downgrade(self), self.admissions.clone());
        let (done, outcome) = watch::channel(None);
        let task = memhost_executor::spawn(async move {
            let admitted = admissions.copy(digest).await;
            let Some(plugins) = plugins.upgrade() else { return };
            let loaded = admitted.map_err(|error| error.to_string()).map(|component| {
                let plugin = Plugin {
                    source: PluginSource::Copy,
                    component,
                    signed: Signed::No,
                    written: (0, 0),
                };
                plugins.insert(plugin.clone());
                plugin
            });
            done.send_replace(Some(loaded));
            // From here on it is known, or tried again.
            plugins.loading.lock().remove(&digest);
        });
        Loading { outcome, _task: AbortOnDrop(task.abort_handle()) }
    }

    /// The copies of builds that are not in the directory, or not admitted yet.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub fn copies(&self) -> Result<HashSet<Digest>, PluginError> {
        let all = self.components.digests()?.into_iter();
        let admitted: HashSet<Digest> =
            self.admitted.read().values().flatten().map(Plugin::digest).collect();
        Ok(all.filter(|digest| !admitted.contains(digest)).collect())
    }

    /// Removes the copies of builds that are neither in the directory nor in this set. Answers
    /// their digests.
    ///
    /// # Errors
    /// Where the copies cannot be read or removed.
    pub fn keep_only(&self, mut needed: HashSet<Digest>) -> Result<BTreeSet<Digest>, PluginError> {
        needed.extend(self.admitted.read().values().flatten().map(Plugin::digest));
        self.components.keep_only(&needed)
    }

    /// All builds of all providers, by key, newest first.
    pub fn list(&self) -> Vec<Plugin> {
        self.admitted.read().values().flatten().cloned().collect()
    }

    /// The plugins directory, from the root.
    pub fn directory(&self) -> PathBuf {
        let own = self.directories.first().cloned().unwrap_or_default();
        std::path::absolute(&own).unwrap_or(own)
    }

    /// Which files are trusted.
    pub fn trust(&self) -> &Trust {
        self.admissions.trust()
    }

    /// The files that are being admitted.
    pub fn admitting(&self) -> Vec<PathBuf> {
        self.progress.files()
    }

    /// Whether every file that was there at the start has been admitted or refused.
    pub fn is_ready(&self) -> bool {
        self.progress.is_ready()
    }

    /// The files that were refused.
    pub fn refused(&self) -> Vec<RefusedPlugin> {
        let refused = self.refused.read();
        refused
            .iter()
            .map(|(path, reason)| RefusedPlugin { path: path.clone(), reason: reason.clone() })
            .collect()
    }

    /// Admits one file on its own, for `plugin inspect`.
    ///
    /// # Errors
    /// Why it is refused.
    pub async fn inspect(sandbox: &Sandbox, path: &Path) -> Result<Component, PluginError> {
        Ok(Component::admit(sandbox, read_alone(path).await?, None).await?)
    }
}
