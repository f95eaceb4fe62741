//! The build that serves each binding, with its instances. They are made at the first operation,
//! and again when the binding or the plugins change.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::activity::ActivityLog;
use crate::bindings::Bindings;
use crate::plugins::{Build as _, Plugin, PluginError, PluginSource, Plugins};
use crate::secrets::SecretStore;
use crate::versions::breaker::{Breaker, BreakerState};
use crate::versions::choice::{Choice, choose};
use crate::versions::rate::Rate;
use memhost_embeddings::Embeddings;
use memhost_ports::BindingStorage;
use memhost_sandbox::{
    Directory, DirectoryAccess, DirectoryQuota, Egress, InstanceSetup, Instances,
    OptionalInterface, Sandbox,
};
use memhost_store::{Lease, LockKind, Store, StoreError};
use memhost_types::{
    Binding, BindingId, BindingKey, CompanyId, Digest, Grants, OperationError, OperationErrorCode,
    Refusal, RejectedVersion, ServingVersion, VersionChoice,
};

/// A build that replaced another one is trusted after this many answers.
const PROBATION_CALLS: u32 = 20;

/// When a call is worth another try whose provider is being compiled.
const WHILE_LOADING: Duration = Duration::from_secs(2);

/// No generation of the plugins: the next call chooses a build again.
pub(super) const UNCHOSEN: u64 = 0;

/// The last answer of a provider about the system behind it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthFound {
    /// When it was asked.
    pub at: Timestamp,
    /// Its finding, in one sentence; absent if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Why it failed; absent if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<OperationError>,
}

/// One binding with its instances.
pub struct Serving {
    /// The binding, in the revision for which this was set up.
    pub binding: Arc<Binding>,
    /// The instances of the build.
    pub instances: Arc<Instances>,
    /// The build.
    pub plugin: Plugin,
    /// Its version, as operations show it.
    pub version: String,
    /// Refuses calls while the provider keeps failing.
    pub breaker: Breaker,
    /// Limits calls per second.
    pub rate: Rate,
    /// The provider's storage, if it may have one.
    pub storage: Option<Arc<dyn BindingStorage>>,
    /// The quota of the provider's directory, if it may have one.
    pub quota: Option<Arc<DirectoryQuota>>,
    /// Sends the provider's requests, if it may make some.
    pub egress: Option<Arc<Egress>>,
    /// The grants that the provider also asks for.
    pub grants: Arc<Grants>,
    /// The provider's last answer about the system behind it.
    pub health: Mutex<Option<HealthFound>>,
    /// The plugins' generation for which this build was chosen.
    generation: AtomicU64,
    probation: Probation,
}

/// The build that served before, while this one is new.
#[derive(Default)]
struct Probation {
    calls_left: AtomicU32,
    previous: Mutex<Option<Arc<Serving>>>,
}

impl Serving {
    /// The build that served before, until this one has given enough answers.
    pub fn previous(&self) -> Option<Arc<Serving>> {
        let is_new = self.probation.calls_left.load(Ordering::Relaxed) > 0;
        is_new.then(|| self.probation.previous.lock().clone()).flatten()
    }

    /// It is still the right build in this generation of the plugins.
    fn renewed(&self, generation: u64) {
        self.generation.store(generation, Ordering::Relaxed);
    }

    /// Counts an answer.
    pub fn proved(&self) {
        if self.probation.calls_left.load(Ordering::Relaxed) == 0 {
            return;
        }
        let less = |left: u32| left.checked_sub(1);
        if self.probation.calls_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            == Ok(1)
        {
            *self.probation.previous.lock() = None;
        }
    }
}

/// The bindings that have served since the host started. All of it belongs to this process: only a
/// company's home serves its bindings.
pub struct ServingBindings {
    pub(super) sandbox: Sandbox,
    pub(super) plugins: Arc<Plugins>,
    pub(super) store: Arc<dyn Store>,
    pub(super) activity: Arc<ActivityLog>,
    secrets: Arc<SecretStore>,
    pub(super) embeddings: Arc<Embeddings>,
    /// `None`: there is no directory that every host sees.
    pub(super) memory_dir: Option<PathBuf>,
    warm: RwLock<HashMap<BindingId, Arc<Serving>>>,
    /// All instances of each binding that may still run a call: also those of earlier revisions and
    /// builds, which a call keeps that was admitted before.
    live: Mutex<HashMap<BindingId, Vec<Weak<Instances>>>>,
    /// Bindings that nothing serves any more: they were deleted, or their company was erased.
    closed: RwLock<HashSet<BindingId>>,
    /// Bindings whose circuit has just opened, and whose providers can say why.
    asks_health: Mutex<Vec<Arc<Binding>>>,
}

impl ServingBindings {
    /// Nothing serves yet. The files of providers are below `files_dir`; without one, providers
    /// that keep files are refused.
    pub fn new(
        sandbox: Sandbox,
        plugins: Arc<Plugins>,
        store: Arc<dyn Store>,
        activity: Arc<ActivityLog>,
        secrets: Arc<SecretStore>,
        embeddings: Arc<Embeddings>,
        files_dir: Option<&Path>,
    ) -> Self {
        let memory_dir = files_dir.map(memory_dir);
        let (warm, live, closed) = (RwLock::default(), Mutex::default(), RwLock::default());
        let asks_health = Mutex::default();
        Self {
            sandbox,
            plugins,
            store,
            activity,
            secrets,
            embeddings,
            memory_dir,
            warm,
            live,
            closed,
            asks_health,
        }
    }

    /// The build that serves a binding now.
    ///
    /// # Errors
    /// Where no build may serve it, or one cannot be set up.
    pub async fn get(&self, binding: &Arc<Binding>) -> Result<Arc<Serving>, Refusal> {
        match self.current(binding) {
            Some(serving) => Ok(serving),
            None => Box::pin(self.renew(binding)).await,
        }
    }

    /// The build that serves a binding, if it has served since the host started and nothing that
    /// it was chosen by has changed.
    pub fn current(&self, binding: &Binding) -> Option<Arc<Serving>> {
        self.warm(binding.id).filter(|serving| self.is_current(serving, binding))
    }

    /// The build that serves a binding, if it has served since the host started.
    pub fn warm(&self, binding: BindingId) -> Option<Arc<Serving>> {
        self.warm.read().get(&binding).cloned()
    }

    fn is_current(&self, serving: &Serving, binding: &Binding) -> bool {
        serving.binding.revision >= binding.revision
            && serving.generation.load(Ordering::Relaxed) == self.plugins.generation()
    }

    async fn renew(&self, binding: &Arc<Binding>) -> Result<Arc<Serving>, Refusal> {
        let _lock = self.lock(binding.id).await?;
        self.check_open(binding)?;
        let present = self.warm(binding.id);
        if let Some(serving) = &present
            && self.is_current(serving, binding)
        {
            return Ok(Arc::clone(serving));
        }
        // Read before the choice: the next call sees what changes during it.
        let generation = self.plugins.generation();
        let known = self.state(binding).await?;
        let Choice { build: plugin, waiting } = self.choose(binding, known.as_ref()).await?;
        let Some(plugin) = plugin else {
            if !self.plugins.is_idle() {
                return Err(self.loading(binding));
            }
            let asks = waiting.first().map(|build| {
                let version = build.build.version();
                format!(
                    "; version {version} is there and asks for more than was granted: `memhost \
                         binding grant`"
                )
            });
            return Err(Refusal::new(
                OperationErrorCode::ProviderMissing,
                format!(
                    "no build of the provider `{}` may serve the binding `{}`, which {}; put its \
                     `.wasm` into the \
                     plugins directory{}",
                    binding.provider_key,
                    binding.key,
                    binding.version,
                    asks.unwrap_or_default()
                ),
            ));
        };
        if let Some(present) = &present
            && present.plugin.digest() == plugin.digest()
            && present.binding.revision >= binding.revision
        {
            present.renewed(generation);
            return Ok(Arc::clone(present));
        }
        match known {
            Some(known) if known.digest != plugin.digest() => {
                self.switch(binding, present, known, plugin, generation).await
            }
            Some(_) => Ok(self.install(self.serve(binding, plugin).await?, None, generation)),
            // A read of what is not stored stores nothing.
            None if binding.is_implied() => {
                Ok(self.install(self.serve(binding, plugin).await?, None, generation))
            }
            None => {
                self.write_state(binding, &state_of(&plugin, Vec::new()), Vec::new()).await?;
                Ok(self.install(self.serve(binding, plugin).await?, None, generation))
            }
        }
    }

    /// The provider is not there, and may be among the files that are being admitted.
    pub(super) fn loading(&self, binding: &Binding) -> Refusal {
        let message = format!(
            "the provider `{}` of the binding `{}` is not loaded yet: the host is still compiling \
             plugins",
            binding.provider_key, binding.key
        );
        Refusal::new(OperationErrorCode::ProviderLoading, message).retry_after(WHILE_LOADING)
    }

    /// Which build serves a binding. Builds whose files are gone are read from their copies.
    async fn choose(
        &self,
        binding: &Binding,
        known: Option<&ServingVersion>,
    ) -> Result<Choice<Plugin>, Refusal> {
        let pinned = match &binding.version {
            VersionChoice::Pin(digest) => Some(*digest),
            VersionChoice::Follow(_) => None,
        };
        for digest in known.map(|known| known.digest).into_iter().chain(pinned) {
            if let Err(error) = self.plugins.build(digest).await {
                // Another build must not take the place of one that is on its way.
                if matches!(error, PluginError::Admitting { .. }) || !self.plugins.is_idle() {
                    return Err(self.loading(binding));
                }
                tracing::warn!(%error, %digest, binding = %binding.key, "a build cannot be read");
            }
        }
        Ok(choose(binding, &self.plugins.builds(&binding.provider_key), known))
    }

    /// Makes a build serve from the next call on.
    pub(super) fn install(
        &self,
        serving: Serving,
        previous: Option<Arc<Serving>>,
        generation: u64,
    ) -> Arc<Serving> {
        serving.generation.store(generation, Ordering::Relaxed);
        if previous.is_some() {
            serving.probation.calls_left.store(PROBATION_CALLS, Ordering::Relaxed);
            *serving.probation.previous.lock() = previous;
        }
        let serving = Arc::new(serving);
        self.warm.write().insert(serving.binding.id, Arc::clone(&serving));
        serving
    }

    /// Forgets what serves a binding; the next call chooses again.
    pub fn forget(&self, binding: BindingId) {
        self.warm.write().remove(&binding);
    }

    /// The grants of a new binding that nobody has decided about. The built-in provider gets what
    /// it asks for, except embeddings that are computed elsewhere; an operator decides about any
    /// other provider.
    pub fn default_grants(&self, plugin: &Plugin) -> Grants {
        match plugin.source {
            PluginSource::Builtin => {
                let all = Grants::all_of(&plugin.component.description().permissions);
                let embeddings = all.embeddings && self.embeddings.computes_here();
                Grants { embeddings, ..all }
            }
            PluginSource::File(_) | PluginSource::Copy => Grants::default(),
        }
    }

    /// Hold this while you decide what serves a binding.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn lock(&self, binding: BindingId) -> Result<Lease, StoreError> {
        self.store.lock(LockKind::Binding, binding.0.as_bytes()).await
    }

    /// A build set up to serve a binding. No instance is made yet. The caller holds the binding's
    /// lock.
    ///
    /// # Errors
    /// Where the binding was deleted, or its storage or directory cannot be opened.
    pub async fn serve(&self, binding: &Arc<Binding>, plugin: Plugin) -> Result<Serving, Refusal> {
        self.check_open(binding)?;
        let grants = Arc::new(self.granted(binding, &plugin)?);
        let storage = self.storage(binding, &grants).await?;
        let quota = match grants.directory_bytes {
            0 => None,
            bytes => Some(self.quota(binding, bytes).await?),
        };
        let directory = quota.as_ref().map(|quota| Directory {
            path: quota.path().to_owned(),
            access: DirectoryAccess::ReadWrite(Arc::clone(quota)),
        });
        let egress = self.egress(binding, &grants).await?;
        let setup = InstanceSetup {
            config: config(binding)?.into(),
            storage: storage.clone(),
            directory,
            embeddings: grants
                .embeddings
                .then(|| self.embeddings.for_binding(&binding.company_id, binding.id)),
            grants: Arc::clone(&grants),
            egress: egress.clone(),
            limits: binding.limits,
        };
        let instances = Arc::new(Instances::new(&self.sandbox, &plugin.component, setup));
        {
            let mut live = self.live.lock();
            let of_binding = live.entry(binding.id).or_default();
            of_binding.retain(|other| other.strong_count() > 0);
            of_binding.push(Arc::downgrade(&instances));
        }
        Ok(Serving {
            version: plugin.version().to_string(),
            binding: Arc::clone(binding),
            instances,
            plugin,
            breaker: Breaker::default(),
            rate: Rate::new(binding.limits.calls_per_second),
            storage,
            quota,
            egress,
            grants,
            health: Mutex::default(),
            generation: AtomicU64::new(UNCHOSEN),
            probation: Probation::default(),
        })
    }

    async fn egress(
        &self,
        binding: &Binding,
        grants: &Grants,
    ) -> Result<Option<Arc<Egress>>, Refusal> {
        if grants.http.is_empty() {
            return Ok(None);
        }
        let egress = self.sandbox.egress(grants.http.clone(), &binding.limits);
        let secrets = self.secrets.granted(&binding.company_id, &grants.secrets).await?;
        egress.set_secrets(secrets).await.map_err(Refusal::host)?;
        Ok(Some(Arc::new(egress)))
    }

    /// Gives changed secrets of a company to its bindings. Later requests have the new values.
    ///
    /// # Errors
    /// Where the secrets cannot be read.
    pub async fn renew_secrets(&self, company: &CompanyId) -> Result<(), StoreError> {
        let warm: Vec<Arc<Serving>> = self.warm.read().values().cloned().collect();
        for serving in warm.into_iter().filter(|serving| serving.binding.company_id == *company) {
            for serving in serving.previous().into_iter().chain([serving]) {
                let Some(egress) = &serving.egress else { continue };
                let names = &serving.grants.secrets;
                if let Err(error) =
                    egress.set_secrets(self.secrets.granted(company, names).await?).await
                {
                    tracing::error!(%error, binding = %serving.binding.key, "a secret cannot be \
                        used");
                }
            }
        }
        Ok(())
    }

    /// Secrets that the binding may use and that are not set, or were encrypted with another vault
    /// key.
    pub async fn missing_secrets(&self, binding: &Binding) -> Vec<String> {
        let mut missing = Vec::new();
        for name in &binding.grants.secrets {
            if !self.secrets.is_usable(&binding.company_id, name).await {
                missing.push(name.clone());
            }
        }
        missing
    }

    /// Refuses a binding that was closed: its storage must not be made again.
    fn check_open(&self, binding: &Binding) -> Result<(), Refusal> {
        match self.closed.read().contains(&binding.id) {
            true => Err(binding_deleted(&binding.key)),
            false => Ok(()),
        }
    }

    /// Closes a binding's circuit, if it is open: the next call makes new instances.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn close_circuit(&self, binding: BindingId) -> Result<(), StoreError> {
        let _lock = self.lock(binding).await?;
        if self.warm(binding).is_some_and(|serving| serving.breaker.state() != BreakerState::Closed)
        {
            self.forget(binding);
        }
        Ok(())
    }

    /// Closes a binding's circuit, and has its next call consider the builds that were rejected.
    ///
    /// # Errors
    /// Where the state of its versions cannot be read or written.
    pub async fn reset(&self, binding: &Binding) -> Result<(), Refusal> {
        let _lock = self.lock(binding.id).await?;
        let state = self.state(binding).await?;
        if let Some(mut state) = state.filter(|state| !state.rejected_versions.is_empty()) {
            state.rejected_versions.clear();
            self.write_state(binding, &state, Vec::new()).await?;
        }
        self.forget(binding.id);
        Ok(())
    }

    /// Has the background work ask a provider how the system behind it is, where the provider can
    /// say it.
    pub fn ask_health_soon(&self, serving: &Serving) {
        if serving.plugin.component.exports(OptionalInterface::Health) {
            self.asks_health.lock().push(Arc::clone(&serving.binding));
        }
    }

    /// The bindings to ask, once.
    pub fn take_health_to_ask(&self) -> Vec<Arc<Binding>> {
        std::mem::take(&mut *self.asks_health.lock())
    }

    /// Ends the service of a binding. When this returns, no call runs, and calls that were admitted
    /// before are refused. The caller holds the binding's lock.
    pub async fn close(&self, binding: BindingId) {
        self.closed.write().insert(binding);
        self.forget(binding);
        self.retire_all(binding, None).await;
        self.live.lock().remove(&binding);
    }

    /// Retires the instances of a binding, all but these, once their calls have ended.
    pub(super) async fn retire_all(&self, binding: BindingId, except: Option<&Arc<Instances>>) {
        let live = self.live.lock().get(&binding).cloned().unwrap_or_default();
        for instances in live.iter().filter_map(Weak::upgrade) {
            if except.is_none_or(|except| !Arc::ptr_eq(except, &instances)) {
                instances.drain().await.retire();
            }
        }
    }

    /// Removes copies of builds whose files are gone and that serve no binding. Called before
    /// anything serves. Answers their digests.
    pub async fn drop_unneeded_copies(&self, bindings: &Bindings) -> BTreeSet<Digest> {
        let mut needed = HashSet::new();
        // Looking at each binding takes a while where there are many.
        let Ok(copies) = self.plugins.copies() else { return BTreeSet::new() };
        for company in bindings.companies() {
            for binding in bindings.list(&company) {
                if copies.is_subset(&needed) {
                    return BTreeSet::new();
                }
                match self.state(&binding).await {
                    Ok(state) => needed.extend(state.map(|state| state.digest)),
                    // A binding whose state cannot be read may need any of them.
                    Err(_) => return BTreeSet::new(),
                }
                if let VersionChoice::Pin(digest) = &binding.version {
                    needed.insert(*digest);
                }
            }
        }
        self.plugins.keep_only(needed).unwrap_or_else(|error| {
            tracing::warn!(%error, "unneeded copies of plugins were not removed");
            BTreeSet::new()
        })
    }
}

/// The refusal of a call while the circuit of a binding is open for another `wait`.
pub fn circuit_open(serving: &Serving, wait: Duration) -> Refusal {
    let (key, failures, ms) =
        (&serving.binding.key, serving.breaker.failures(), wait.as_millis().max(1));
    let last = serving
        .breaker
        .reason()
        .map(|reason| format!(". The last call failed: {reason}"))
        .unwrap_or_default();
    let times =
        if failures == 1 { "once".to_owned() } else { format!("{failures} times in a row") };
    let message = format!(
        "the provider of the binding `{key}` failed {times}, and its circuit is open for another \
         {ms} ms; \
         `memhost binding reset {key}` closes it{last}"
    );
    Refusal::new(OperationErrorCode::CircuitOpen, message).retry_after(wait)
}

/// The refusal of a call for a binding that was deleted.
pub fn binding_deleted(key: &BindingKey) -> Refusal {
    Refusal::new(OperationErrorCode::NoBinding, format!("the binding `{key}` was deleted"))
}

pub(super) fn config(binding: &Binding) -> Result<String, Refusal> {
    serde_json::to_string(&binding.config).map_err(Refusal::host)
}

/// The state of a binding that a build serves.
pub(super) fn state_of(plugin: &Plugin, rejected_versions: Vec<RejectedVersion>) -> ServingVersion {
    ServingVersion { digest: plugin.digest(), version: plugin.version().clone(), rejected_versions }
}

/// The name of the directory of all providers' files.
pub const MEMORY: &str = "memory";

/// The directory of all providers' files.
pub(super) fn memory_dir(data_dir: &Path) -> PathBuf {
    data_dir.join(MEMORY)
}
