//! Admitted and refused components. A refused file is shown with its reason until it changes.

mod copies;
mod scan;

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Order};

use parking_lot::RwLock;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::broadcast;

use self::copies::Copies;
use self::scan::SeenFile;
use crate::plugins::admissions::{Admissions, read_alone};
use crate::plugins::error::PluginError;
use crate::plugins::files::{self, Fingerprint};
use crate::plugins::kept::KeptComponents;
use crate::plugins::progress::Progress;
use crate::plugins::remembered::Remembered;
use crate::plugins::trust::{Signed, Trust};
use crate::plugins::{PluginChange, PluginOutcome};
use memhost_sandbox::{CacheKey, Component, Sandbox};
use memhost_types::{Digest, ProviderKey, VersionChoice};

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
    /// When its file was written: the later of two builds of one version is the newer.
    pub(super) written: (i64, i64),
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
    pub fn is_allowed_by(&self, choice: &VersionChoice) -> bool {
        choice.allows(self.version(), self.digest())
    }

    /// Whether it replaces another build of its provider: it has a higher version, or the same
    /// version, its file is there, and it was written later.
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
    pub(super) admissions: Admissions,
    pub(crate) directory: PathBuf,
    kept: KeptComponents,
    pub(super) admitted: RwLock<BTreeMap<ProviderKey, Vec<Plugin>>>,
    /// What is known of each file. A file that is dropped from it is no longer admitted.
    files: tokio::sync::Mutex<BTreeMap<PathBuf, SeenFile>>,
    copies: Copies,
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
        files::list(&options.directory)?;
        let unpacked = memhost_executor::spawn_blocking(memhost_builtin::local_markdown).await;
        let builtin = unpacked.map_err(std::io::Error::other).and_then(|unpacked| unpacked);
        let builtin = builtin.map_err(|error| PluginError::Io {
            action: "unpacking",
            what: "the built-in provider of this binary".to_owned(),
            message: error.to_string(),
        })?;
        let component = Component::admit_own(sandbox, builtin, Some(&cache)).await?;
        let remembered = Remembered::new(options.kept.clone());
        let (kept, trust) = (KeptComponents::open(options.kept)?, Arc::new(options.trust));
        let plugins = Self {
            admissions: Admissions::new(sandbox.clone(), cache, kept.clone(), trust, remembered),
            directory: options.directory,
            kept,
            admitted: RwLock::default(),
            files: tokio::sync::Mutex::default(),
            copies: Copies::default(),
            refused: RwLock::default(),
            progress: Arc::default(),
            generation: AtomicU64::new(1),
            changes: broadcast::Sender::new(CHANGES),
        };
        plugins.insert(Plugin {
            source: PluginSource::Builtin,
            component,
            signed: Signed::No,
            written: (0, 0),
        });
        Ok(Arc::new(plugins))
    }

    /// Increases whenever the available builds change.
    pub fn generation(&self) -> u64 {
        self.generation.load(Order::Acquire)
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

    pub(super) fn insert(&self, plugin: Plugin) {
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
        self.generation.fetch_add(1, Order::AcqRel);
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
                build.source = PluginSource::Kept;
                changed = true;
                let description = build.component.description();
                let (provider, version) = (&description.provider_key, &description.version);
                tracing::warn!(path = %path.display(), %provider, %version, "a plugin's file is \
                    gone");
            }
        }
        drop(admitted);
        if changed {
            self.generation.fetch_add(1, Order::AcqRel);
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
