//! Bindings at work: the build that serves each binding and its instances, made at the first operation and made anew
//! when the binding or the plugins change.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::bindings::Bindings;
use crate::error::Refusal;
use crate::host::secrets::SecretStore;
use crate::plugins::Plugin;
use crate::plugins::Plugins;
use crate::versions::breaker::Breaker;
use crate::versions::choice;
use crate::versions::choice::Choice;
use crate::versions::rate::Rate;
use memhost_embeddings::Embeddings;
use memhost_ports::BindingStorage;
use memhost_sandbox::{Directory, DirectoryAccess, DirectoryQuota, Egress, InstanceSetup, Instances, Sandbox};
use memhost_store::{Store, StoreError};
use memhost_types::{Binding, BindingId, CompanyId, Grants, OperationErrorCode, ServingVersion, VersionChoice};

mod kept;

/// A version that came in the place of another one is trusted after this many answers.
const PROBATION_CALLS: u32 = 20;

/// No generation of the plugins: the next call looks anew which build serves.
pub(crate) const UNCHOSEN: u64 = 0;

/// One binding with its instances.
pub(crate) struct Serving {
    pub(crate) binding: Arc<Binding>,
    pub(crate) instances: Instances,
    pub(crate) plugin: Plugin,
    pub(crate) breaker: Breaker,
    pub(crate) rate: Rate,
    pub(crate) storage: Option<Arc<dyn BindingStorage>>,
    pub(crate) quota: Option<Arc<DirectoryQuota>>,
    pub(crate) egress: Option<Arc<Egress>>,
    /// The plugins' generation for which this build was chosen.
    generation: AtomicU64,
    probation: Probation,
}

/// The build that served before, while the present one is new.
#[derive(Default)]
struct Probation {
    calls_left: AtomicU32,
    previous: Mutex<Option<Arc<Serving>>>,
}

impl Serving {
    /// The build that served before, while this one has not proved itself.
    pub(crate) fn previous(&self) -> Option<Arc<Serving>> {
        if self.probation.calls_left.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.probation.previous.lock().clone()
    }

    /// It is still the right build, for the plugins as they are now.
    fn renewed(&self, generation: u64) {
        self.generation.store(generation, Ordering::Relaxed);
    }

    /// One more answer.
    pub(crate) fn proved(&self) {
        if self.probation.calls_left.load(Ordering::Relaxed) == 0 {
            return;
        }
        let less = |left: u32| left.checked_sub(1);
        if self.probation.calls_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) == Ok(1) {
            *self.probation.previous.lock() = None;
        }
    }
}

/// The bindings that have served since the host started.
pub(crate) struct ServingBindings {
    pub(crate) sandbox: Sandbox,
    pub(crate) plugins: Arc<Plugins>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) bindings: Arc<Bindings>,
    secrets: Arc<SecretStore>,
    pub(crate) embeddings: Arc<Embeddings>,
    memory_dir: PathBuf,
    warm: RwLock<HashMap<BindingId, Arc<Serving>>>,
    /// Bindings that nothing serves any more: they were deleted, or their company was erased.
    closed: RwLock<HashSet<BindingId>>,
    /// One at a time decides for a binding.
    deciding: Mutex<HashMap<BindingId, Arc<tokio::sync::Mutex<()>>>>,
}

impl ServingBindings {
    pub(crate) fn new(
        sandbox: Sandbox,
        plugins: Arc<Plugins>,
        store: Arc<dyn Store>,
        bindings: Arc<Bindings>,
        secrets: Arc<SecretStore>,
        embeddings: Arc<Embeddings>,
        data_dir: &Path,
    ) -> Self {
        let memory_dir = data_dir.join("memory");
        let (warm, deciding, closed) = (RwLock::default(), Mutex::default(), RwLock::default());
        Self { sandbox, plugins, store, bindings, secrets, embeddings, memory_dir, warm, deciding, closed }
    }

    /// What serves a binding now.
    pub(crate) async fn get(&self, binding: &Arc<Binding>) -> Result<Arc<Serving>, Refusal> {
        match self.warm(binding.id) {
            Some(serving) if self.is_current(&serving, binding) => Ok(serving),
            _ => self.renew(binding).await,
        }
    }

    /// What serves a binding, if it has served since the host started.
    pub(crate) fn warm(&self, binding: BindingId) -> Option<Arc<Serving>> {
        self.warm.read().get(&binding).cloned()
    }

    fn is_current(&self, serving: &Serving, binding: &Binding) -> bool {
        serving.binding.revision >= binding.revision
            && serving.generation.load(Ordering::Relaxed) == self.plugins.generation()
    }

    async fn renew(&self, binding: &Arc<Binding>) -> Result<Arc<Serving>, Refusal> {
        let turn = self.lock(binding.id);
        let _turn = turn.lock().await;
        // A call that waited while its binding was deleted must not make its storage anew.
        if self.closed.read().contains(&binding.id) {
            let message = format!("the binding `{}` was deleted", binding.key);
            return Err(Refusal::new(OperationErrorCode::NoBinding, message));
        }
        let present = self.warm(binding.id);
        if let Some(serving) = &present
            && self.is_current(serving, binding)
        {
            return Ok(Arc::clone(serving));
        }
        // Before the choice: what changes during it is looked at by the next call.
        let generation = self.plugins.generation();
        let known = self.state(binding).await?;
        let Choice { plugin, waiting } = self.choose(binding, known.as_ref()).await;
        let Some(plugin) = plugin else {
            let asks = waiting.first().map(|build| {
                let version = &build.plugin.component.description().version;
                format!("; version {version} is there and asks for more than was granted: `memhost binding grant`")
            });
            return Err(Refusal::new(
                OperationErrorCode::ProviderMissing,
                format!(
                    "no build of the provider `{}` may serve the binding `{}`, which {}; put its `.wasm` into the \
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
            None => {
                self.write_state(binding, &first_state(&plugin), Vec::new()).await?;
                Ok(self.install(self.serve(binding, plugin).await?, None, generation))
            }
        }
    }

    /// Which build serves a binding, with those that only copies are left of.
    pub(crate) async fn choose(&self, binding: &Binding, known: Option<&ServingVersion>) -> Choice {
        let pinned = match &binding.version {
            VersionChoice::Pin(digest) => Some(*digest),
            VersionChoice::Follow(_) => None,
        };
        for digest in known.map(|known| known.digest).into_iter().chain(pinned) {
            if let Err(error) = self.plugins.build(digest).await {
                tracing::warn!(%error, %digest, binding = %binding.key, "a build cannot be had");
            }
        }
        choice::choose(binding, &self.plugins.builds(&binding.provider_key), known)
    }

    /// Makes a build the one that serves.
    pub(crate) fn install(&self, serving: Serving, previous: Option<Arc<Serving>>, generation: u64) -> Arc<Serving> {
        serving.generation.store(generation, Ordering::Relaxed);
        if previous.is_some() {
            serving.probation.calls_left.store(PROBATION_CALLS, Ordering::Relaxed);
            *serving.probation.previous.lock() = previous;
        }
        let serving = Arc::new(serving);
        self.warm.write().insert(serving.binding.id, Arc::clone(&serving));
        serving
    }

    /// Forgets what serves a binding; the next call finds out anew.
    pub(crate) fn forget(&self, binding: BindingId) {
        self.warm.write().remove(&binding);
    }

    /// One at a time decides what serves a binding.
    pub(crate) fn lock(&self, binding: BindingId) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(self.deciding.lock().entry(binding).or_default())
    }

    /// A build set up to serve a binding. No instance is made yet.
    pub(crate) async fn serve(&self, binding: &Arc<Binding>, plugin: Plugin) -> Result<Serving, Refusal> {
        let grants = effective(&binding.grants, &plugin);
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
            embeddings: grants.embeddings.then(|| self.embeddings.for_binding(binding.id)),
            clock: grants.clock,
            egress: egress.clone(),
            limits: binding.limits,
        };
        Ok(Serving {
            binding: Arc::clone(binding),
            instances: Instances::new(&self.sandbox, &plugin.component, setup),
            plugin,
            breaker: Breaker::default(),
            rate: Rate::new(binding.limits.calls_per_second),
            storage,
            quota,
            egress,
            generation: AtomicU64::new(UNCHOSEN),
            probation: Probation::default(),
        })
    }

    async fn egress(&self, binding: &Binding, grants: &Grants) -> Result<Option<Arc<Egress>>, Refusal> {
        if grants.http.is_empty() {
            return Ok(None);
        }
        let egress = self.sandbox.egress(grants.http.clone(), &binding.limits);
        let secrets = self.secrets.granted(&binding.company_id, &grants.secrets).await.map_err(|error| host(&error))?;
        egress.set_secrets(secrets).map_err(|error| host(&error))?;
        Ok(Some(Arc::new(egress)))
    }

    /// A company's secrets were changed: requests from now on have the new ones.
    pub(crate) async fn renew_secrets(&self, company: &CompanyId) -> Result<(), StoreError> {
        let warm: Vec<Arc<Serving>> = self.warm.read().values().cloned().collect();
        for serving in warm.into_iter().filter(|serving| serving.binding.company_id == *company) {
            for serving in serving.previous().into_iter().chain([serving]) {
                let Some(egress) = &serving.egress else { continue };
                let names = effective(&serving.binding.grants, &serving.plugin).secrets;
                if let Err(error) = egress.set_secrets(self.secrets.granted(company, &names).await?) {
                    tracing::error!(%error, binding = %serving.binding.key, "a secret cannot be used");
                }
            }
        }
        Ok(())
    }

    /// Secrets that the binding may have and that are not set, or not with this vault's key.
    pub(crate) async fn missing_secrets(&self, binding: &Binding) -> Vec<String> {
        let mut missing = Vec::new();
        for name in &binding.grants.secrets {
            if !self.secrets.is_usable(&binding.company_id, name).await {
                missing.push(name.clone());
            }
        }
        missing
    }

    /// Nothing serves a binding any more, and what was at work has ended when this returns. Whoever calls it holds the
    /// binding's turn.
    pub(crate) async fn close(&self, binding: BindingId) {
        self.closed.write().insert(binding);
        if let Some(serving) = self.warm(binding) {
            serving.instances.retire();
            drop(serving.instances.drain().await);
        }
        self.forget(binding);
    }

    /// Copies of builds that serve nobody and whose files are gone are thrown away. Called when nothing serves yet.
    pub(crate) async fn drop_unneeded_copies(&self) {
        let mut needed = HashSet::new();
        for company in self.bindings.companies() {
            for binding in self.bindings.list(&company) {
                match self.state(&binding).await {
                    Ok(state) => needed.extend(state.map(|state| state.digest)),
                    // What cannot be read might need any of them.
                    Err(_) => return,
                }
                if let VersionChoice::Pin(digest) = &binding.version {
                    needed.insert(*digest);
                }
            }
        }
        if let Err(error) = self.plugins.keep_only(needed) {
            tracing::warn!(%error, "copies of plugins that nobody needs are still there");
        }
    }
}

/// What was granted and is asked for.
pub(crate) fn effective(granted: &Grants, plugin: &Plugin) -> Grants {
    granted.effective(&plugin.component.description().permissions)
}

pub(crate) fn config(binding: &Binding) -> Result<String, Refusal> {
    serde_json::to_string(&binding.config).map_err(|error| host(&error))
}

pub(crate) fn host(error: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(OperationErrorCode::Host, error.to_string())
}

fn first_state(plugin: &Plugin) -> ServingVersion {
    let version = plugin.component.description().version.clone();
    ServingVersion { digest: plugin.digest(), version, rejected_versions: Vec::new() }
}
