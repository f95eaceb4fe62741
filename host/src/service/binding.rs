//! The control plane of bindings: making and changing them, what their providers may reach, and how they are doing.

use serde::{Deserialize, Serialize};

use super::breaker::BreakerState;
use super::choice;
use super::error::Refusal;
use super::{Caller, Service, ServiceError};
use crate::bindings::{BindingError, NewActivity, NewBinding, Resolution, Why};
use crate::contract::limits::{DEFAULT_LIMIT, MAX_JSON_BYTES};
use crate::contract::{
    Activity, ActivityAction, AgentId, Binding, BindingKey, BindingLimits, CompanyId, Digest, FieldError, Grants,
    JsonObject, KeptFrom, Permission, PermissionRequest, ProviderKey, Scope, Target, VersionChoice,
};
use crate::plugins::{LOCAL_MARKDOWN_KEY, Plugin, PluginSource};
use crate::sandbox::{Component, DirectoryUsage, InstanceSetup, Instances};

/// A request to make a binding.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateBinding {
    /// Unique in the company.
    pub key: BindingKey,
    /// Which provider answers.
    pub provider_key: ProviderKey,
    /// Which of its versions; the newest where absent.
    #[serde(default)]
    pub version: VersionChoice,
    /// The provider's configuration; `{}` where absent.
    #[serde(default)]
    pub config: JsonObject,
    /// What the provider may reach. Absent: what the built-in provider asks for, nothing for any other.
    #[serde(default)]
    pub grants: Option<Grants>,
    /// What the provider may use; the defaults where absent.
    #[serde(default)]
    pub limits: BindingLimits,
    /// Whether it becomes the company's default at once.
    #[serde(default)]
    pub default: bool,
}

/// A request to change a binding. What is absent stays as it is.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct UpdateBinding {
    /// The revision that the caller has seen; another one is a conflict.
    pub revision: Option<u64>,
    /// Which versions of its provider.
    pub version: Option<VersionChoice>,
    /// The provider's configuration, as a whole.
    pub config: Option<JsonObject>,
    /// What the provider may use, as a whole.
    pub limits: Option<BindingLimits>,
    /// Whether it takes operations.
    pub enabled: Option<bool>,
}

/// A request to point the company or an agent at a binding.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetTarget {
    /// Absent: the company's default.
    #[serde(default)]
    pub agent_id: Option<AgentId>,
    /// Which binding; null: none any more. It must be said: a target is not lost by leaving a field out.
    #[serde(deserialize_with = "Option::deserialize")]
    pub binding_key: Option<BindingKey>,
}

/// A binding as it is shown.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BindingView {
    /// The binding.
    #[serde(flatten)]
    pub binding: Binding,
    /// Whether it is the company's default.
    pub is_default: bool,
    /// Which agents have it as their override.
    pub agents: Vec<AgentId>,
    /// The build that served last; absent before the first operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serving: Option<BuildView>,
    /// Newer builds that ask for more than was granted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingView>,
    /// Builds that were tried and do not serve.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept_from: Vec<KeptFrom>,
    /// What somebody should look at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether its provider is left alone for a while.
    pub breaker: BreakerState,
    /// What it takes of its grants, once it has served since the host started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageView>,
}

/// One build as it is shown.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BuildView {
    /// What it is told by.
    pub digest: Digest,
    /// Its version.
    pub version: semver::Version,
}

/// A build that waits for a decision.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingView {
    /// Which.
    #[serde(flatten)]
    pub build: BuildView,
    /// What nobody has decided about.
    pub asks: Vec<PermissionRequest>,
}

/// What a binding takes of its grants.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageView {
    /// Of `storageBytes`.
    pub storage_bytes: u64,
    /// Of `directoryBytes`, at most.
    pub directory_bytes: u64,
    /// Of `directoryFiles`, at most.
    pub directory_files: u64,
}

/// What a binding's provider asks for beside what it was granted.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GrantsView {
    /// What was granted.
    pub granted: Grants,
    /// What the newest build asks for, and whether somebody has decided about it.
    pub asked: Vec<AskedView>,
    /// The version that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<semver::Version>,
}

/// One thing that is asked for.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedView {
    /// What, why and whether it works without.
    #[serde(flatten)]
    pub request: PermissionRequest,
    /// In words.
    pub summary: String,
    /// Whether somebody has decided about it.
    pub is_reviewed: bool,
}

impl Service {
    /// Makes a binding, if its provider accepts the configuration.
    ///
    /// # Errors
    /// Where the provider is not loaded or does not accept the configuration, or the key is taken.
    pub async fn create_binding(
        &self,
        caller: &Caller,
        company: &CompanyId,
        request: CreateBinding,
    ) -> Result<BindingView, ServiceError> {
        let plugin = self.build_for(&request.provider_key, &request.version).await?;
        if !plugin.is_present() && matches!(request.version, VersionChoice::Follow(_)) {
            return Err(ServiceError::NoProvider { key: request.provider_key.to_string() });
        }
        self.check(&plugin, &request.config, &request.limits).await?;
        let grants = request.grants.unwrap_or_else(|| default_grants(&plugin));
        check_grants(&grants)?;
        let new = NewBinding {
            key: request.key,
            provider_key: request.provider_key,
            version: request.version,
            config: request.config,
            grants,
            reviewed: asked(&plugin),
            limits: request.limits,
            make_default: request.default,
        };
        let binding = self.bindings.create(caller.principal(), company, new).await?;
        tracing::info!(%company, binding = %binding.key, provider = %binding.provider_key, "a binding was made");
        self.binding(company, &binding.key)
    }

    /// Changes a binding, if its provider accepts the configuration.
    ///
    /// # Errors
    /// Where there is none of this key, it was changed meanwhile, or the provider does not accept the configuration.
    pub async fn update_binding(
        &self,
        caller: &Caller,
        company: &CompanyId,
        key: &BindingKey,
        request: UpdateBinding,
    ) -> Result<BindingView, ServiceError> {
        let present = self.bindings.get(company, key)?;
        let version = request.version.as_ref().unwrap_or(&present.version);
        let config = request.config.as_ref().unwrap_or(&present.config);
        let limits = request.limits.as_ref().unwrap_or(&present.limits);
        if request.version.is_some() || request.config.is_some() || request.limits.is_some() {
            let plugin = self.build_for(&present.provider_key, version).await?;
            self.check(&plugin, config, limits).await?;
        }
        let by = (caller.principal(), ActivityAction::BindingChanged);
        let change = |binding: &mut Binding| {
            binding.version = request.version.unwrap_or_else(|| binding.version.clone());
            binding.config = request.config.unwrap_or_else(|| std::mem::take(&mut binding.config));
            binding.limits = request.limits.unwrap_or(binding.limits);
            binding.enabled = request.enabled.unwrap_or(binding.enabled);
        };
        self.bindings.update(company, key, request.revision, by, change).await?;
        self.binding(company, key)
    }

    /// Sets what a binding's provider may reach, having seen what its newest build asks for.
    ///
    /// # Errors
    /// Where there is none of this key or a grant is no grant.
    pub async fn set_grants(
        &self,
        caller: &Caller,
        company: &CompanyId,
        key: &BindingKey,
        grants: Grants,
    ) -> Result<GrantsView, ServiceError> {
        check_grants(&grants)?;
        let present = self.bindings.get(company, key)?;
        let plugin = self.build_for(&present.provider_key, &present.version).await?;
        let by = (caller.principal(), ActivityAction::GrantsChanged);
        let change = |binding: &mut Binding| {
            binding.grants = grants;
            binding.reviewed = asked(&plugin);
        };
        self.bindings.update(company, key, None, by, change).await?;
        self.grants(company, key)
    }

    /// What a binding's provider asks for, and what it was granted.
    ///
    /// # Errors
    /// Where there is none of this key.
    pub fn grants(&self, company: &CompanyId, key: &BindingKey) -> Result<GrantsView, ServiceError> {
        let binding = self.bindings.get(company, key)?;
        let builds = self.plugins.builds(&binding.provider_key);
        let newest =
            builds.iter().find(|build| binding.version.allows(&build.component.description().version, build.digest()));
        let requests = newest.map(|build| build.component.description().permissions.clone()).unwrap_or_default();
        let unreviewed = crate::contract::unreviewed(&binding.reviewed, &requests);
        let view = |request: &PermissionRequest| AskedView {
            summary: request.permission.to_string(),
            is_reviewed: !unreviewed.contains(&request),
            request: request.clone(),
        };
        Ok(GrantsView {
            granted: binding.grants.clone(),
            asked: requests.iter().map(view).collect(),
            version: newest.map(|build| build.component.description().version.clone()),
        })
    }

    /// Closes a binding's circuit breaker, and lets builds that were kept from it be tried again.
    ///
    /// # Errors
    /// Where there is none of this key or the store fails.
    pub async fn reset_binding(
        &self,
        caller: &Caller,
        company: &CompanyId,
        key: &BindingKey,
    ) -> Result<BindingView, ServiceError> {
        let binding = self.bindings.get(company, key)?;
        let turn = self.serving.turn(binding.id);
        let _turn = turn.lock().await;
        let state = self.serving.state(&binding).map_err(host)?;
        if let Some(mut state) = state.filter(|state| !state.kept_from.is_empty()) {
            state.kept_from.clear();
            self.serving.write_state(&binding, &state, Vec::new()).await.map_err(host)?;
        }
        self.serving.forget(binding.id);
        let entry = NewActivity::new(caller.principal(), ActivityAction::BindingReset, key.as_str());
        self.bindings.record(company, entry).await?;
        self.binding(company, key)
    }

    /// The newest build that the choice allows.
    async fn build_for(&self, key: &ProviderKey, version: &VersionChoice) -> Result<Plugin, ServiceError> {
        if let VersionChoice::Pin(digest) = version {
            let pinned = self.plugins.build(*digest).await.ok();
            let pinned = pinned.filter(|build| build.component.description().provider_key == *key);
            return pinned.ok_or_else(|| ServiceError::NoVersion { key: key.to_string(), choice: version.to_string() });
        }
        let builds = self.plugins.builds(key);
        if builds.is_empty() {
            return Err(ServiceError::NoProvider { key: key.to_string() });
        }
        newest(&builds, version)
            .cloned()
            .ok_or_else(|| ServiceError::NoVersion { key: key.to_string(), choice: version.to_string() })
    }

    async fn check(&self, plugin: &Plugin, config: &JsonObject, limits: &BindingLimits) -> Result<(), ServiceError> {
        check_limits(limits, self.sandbox.options().max_memory_bytes)?;
        let config = serde_json::to_string(config).unwrap_or_default();
        if config.len() > MAX_JSON_BYTES {
            let message = format!("is larger than {MAX_JSON_BYTES} bytes");
            return Err(FieldError::new("config", message).into());
        }
        self.validate_config(&plugin.component, config).await
    }

    async fn validate_config(&self, component: &Component, config: String) -> Result<(), ServiceError> {
        let setup = InstanceSetup {
            config: "{}".into(),
            storage: None,
            directory: None,
            embeddings: false,
            limits: BindingLimits { call_timeout_ms: 2_000, call_cpu_ms: 1_000, ..BindingLimits::default() },
        };
        let complaints = Instances::new(&self.sandbox, component, setup)
            .validate_config(config)
            .await
            .map_err(|failure| failure.error)?;
        if complaints.is_empty() { Ok(()) } else { Err(ServiceError::Config { complaints }) }
    }

    /// One binding as it is shown.
    ///
    /// # Errors
    /// Where there is none of this key.
    pub fn binding(&self, company: &CompanyId, key: &BindingKey) -> Result<BindingView, ServiceError> {
        let binding = self.bindings.get(company, key)?;
        let state = self.serving.state(&binding).map_err(host)?;
        let builds = self.plugins.builds(&binding.provider_key);
        let choice = choice::choose(&binding, &builds, state.as_ref());
        let warm = self.serving.warm(binding.id);
        let mut view = BindingView {
            binding: (*binding).clone(),
            is_default: false,
            agents: Vec::new(),
            warnings: warnings(&binding, &builds, state.as_ref(), &choice),
            serving: state.as_ref().map(|state| BuildView { digest: state.digest, version: state.version.clone() }),
            waiting: choice.waiting.iter().map(waiting).collect(),
            kept_from: state.map(|state| state.kept_from).unwrap_or_default(),
            breaker: warm.as_ref().map_or(BreakerState::Closed, |serving| serving.breaker.state()),
            usage: warm.map(|serving| {
                let directory = serving.quota.as_ref().map(|quota| quota.usage());
                let DirectoryUsage { bytes, files } = directory.unwrap_or_default();
                let storage_bytes = serving.storage.as_ref().map_or(0, |storage| storage.used_bytes());
                UsageView { storage_bytes, directory_bytes: bytes, directory_files: files }
            }),
        };
        for (target, target_key) in self.bindings.targets(company) {
            match target {
                _ if target_key != *key => {}
                Target::Company => view.is_default = true,
                Target::Agent(agent) => view.agents.push(agent),
            }
        }
        Ok(view)
    }

    /// The company's bindings, by key.
    ///
    /// # Errors
    /// None that a caller could cause.
    pub fn bindings(&self, company: &CompanyId) -> Result<Vec<BindingView>, ServiceError> {
        self.bindings.list(company).iter().map(|binding| self.binding(company, &binding.key)).collect()
    }

    /// The companies that have bindings.
    pub fn companies(&self) -> Vec<CompanyId> {
        self.bindings.companies()
    }

    /// Points the company or an agent at a binding, or at none.
    ///
    /// # Errors
    /// Where there is no such binding.
    pub async fn set_target(
        &self,
        caller: &Caller,
        company: &CompanyId,
        request: SetTarget,
    ) -> Result<(), ServiceError> {
        let target = request.agent_id.map_or(Target::Company, Target::Agent);
        Ok(self.bindings.set_target(caller.principal(), company, target, request.binding_key.as_ref()).await?)
    }

    /// Which binding would answer, and why.
    ///
    /// # Errors
    /// Where none would.
    pub fn resolve_binding(
        &self,
        company: &CompanyId,
        agent: Option<&AgentId>,
        named: Option<&BindingKey>,
    ) -> Result<(BindingView, Why), ServiceError> {
        let resolution = self.bindings.resolve(company, agent, named)?;
        Ok((self.binding(company, &resolution.binding.key)?, resolution.why))
    }

    /// What was changed, newest first, and the position of the next page.
    ///
    /// # Errors
    /// Where the log cannot be read.
    pub(super) fn activity_entries(
        &self,
        company: &CompanyId,
        from: Option<&[u8]>,
    ) -> Result<(Vec<Activity>, Option<Vec<u8>>), ServiceError> {
        Ok(self.bindings.activity(company, from, DEFAULT_LIMIT as usize)?)
    }

    /// Zero configuration: a company that never had a binding gets the built-in provider as its default.
    pub(super) async fn resolve_without_config(
        &self,
        scope: &Scope,
        named: Option<&BindingKey>,
        error: BindingError,
    ) -> Result<Resolution, Refusal> {
        let company = &scope.company_id;
        if !self.zero_config || named.is_some() || !self.bindings.list(company).is_empty() {
            return Err(error.into());
        }
        let failed = |error: &dyn std::fmt::Display| super::serving::host(error);
        let request = CreateBinding {
            key: "default".parse().map_err(|error| failed(&error))?,
            provider_key: LOCAL_MARKDOWN_KEY.parse().map_err(|error| failed(&error))?,
            version: VersionChoice::default(),
            config: JsonObject::new(),
            grants: None,
            limits: BindingLimits::default(),
            default: true,
        };
        match self.create_binding(&Caller::operator(), company, request).await {
            // Another operation of the same company may have been first.
            Ok(_) | Err(ServiceError::Binding(BindingError::Exists { .. })) => {
                Ok(self.bindings.resolve(company, scope.agent_id.as_ref(), None)?)
            }
            Err(error) => Err(failed(&error)),
        }
    }
}

fn host(refusal: Refusal) -> ServiceError {
    ServiceError::Host(refusal.error.message)
}

fn waiting(build: &choice::WaitingBuild) -> WaitingView {
    let version = build.plugin.component.description().version.clone();
    WaitingView { build: BuildView { digest: build.plugin.digest(), version }, asks: build.asks.clone() }
}

fn warnings(
    binding: &Binding,
    builds: &[Plugin],
    state: Option<&crate::contract::ServingVersion>,
    choice: &choice::Choice,
) -> Vec<String> {
    let mut all = Vec::new();
    let serving = state.and_then(|state| builds.iter().find(|build| build.digest() == state.digest));
    if let Some(state) = state
        && serving.is_none_or(|build| !build.is_present())
    {
        let version = &state.version;
        all.push(format!("the file of version {version}, which serves, is gone; a copy goes on serving"));
    }
    if let Some(state) = state
        && !binding.version.allows(&state.version, state.digest)
    {
        let version = &state.version;
        all.push(format!("version {version} serves although the binding {}: nothing else may", binding.version));
    }
    if state.is_none() && choice.plugin.is_none() {
        all.push(format!(
            "no build of `{}` may serve; put its `.wasm` into the plugins directory",
            binding.provider_key
        ));
    }
    all
}

/// The newest build that the choice allows, of those whose files are there, or else of those that only copies are left of.
fn newest<'a>(builds: &'a [Plugin], version: &VersionChoice) -> Option<&'a Plugin> {
    let allowed =
        || builds.iter().filter(|build| version.allows(&build.component.description().version, build.digest()));
    allowed().find(|build| build.is_present()).or_else(|| allowed().next())
}

fn asked(plugin: &Plugin) -> Vec<Permission> {
    plugin.component.description().permissions.iter().map(|request| request.permission.clone()).collect()
}

/// The built-in provider is part of the host and gets what it asks for; anybody else's asks are for an operator.
fn default_grants(plugin: &Plugin) -> Grants {
    match plugin.source {
        PluginSource::Builtin => Grants::all_of(&plugin.component.description().permissions),
        PluginSource::File(_) | PluginSource::Kept => Grants::default(),
    }
}

/// Nothing is sent anywhere yet; what is stored must make sense to the host that will do it.
fn check_grants(grants: &Grants) -> Result<(), FieldError> {
    const MOST: usize = 64;
    let wrong = |field: String, message: String| Err(FieldError::new(format!("grants.{field}"), message));
    for (name, count) in [("http", grants.http.len()), ("secrets", grants.secrets.len())] {
        if count > MOST {
            return wrong(name.to_owned(), format!("has {count} entries; at most {MOST} are allowed"));
        }
    }
    for (index, http) in grants.http.iter().enumerate() {
        let has_scheme = ["https://", "http://"].iter().any(|scheme| http.origin.starts_with(scheme));
        if !has_scheme || http.origin.len() > 300 || !http.origin.bytes().all(|byte| byte.is_ascii_graphic()) {
            let message =
                format!("is `{}`; give an origin such as https://api.example.com", http.origin.escape_debug());
            return wrong(format!("http.{index}.origin"), message);
        }
        if let Some(method) = http.methods.iter().find(|method| !is_token(method, |byte| byte.is_ascii_uppercase())) {
            let message = format!("has `{}`; give methods in capitals, such as GET", method.escape_debug());
            return wrong(format!("http.{index}.methods"), message);
        }
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    match grants.secrets.iter().position(|name| !is_token(name, is_name)) {
        Some(index) => {
            let message = "is no name; 1 to 64 letters, digits, `_` and `-` are allowed".to_owned();
            wrong(format!("secrets.{index}"), message)
        }
        None => Ok(()),
    }
}

fn is_token(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(allowed)
}

fn check_limits(limits: &BindingLimits, max_memory: u64) -> Result<(), FieldError> {
    let range = |field: &str, value: u64, min: u64, max: u64| {
        if (min..=max).contains(&value) {
            return Ok(());
        }
        Err(FieldError::new(format!("limits.{field}"), format!("is {value}; {min} to {max} are allowed")))
    };
    range("memoryBytes", limits.memory_bytes, 1 << 20, max_memory)?;
    range("tableElements", limits.table_elements, 1, 100_000)?;
    range("callTimeoutMs", limits.call_timeout_ms, 1, 600_000)?;
    range("callCpuMs", limits.call_cpu_ms, 1, 600_000)?;
    range("concurrentCalls", u64::from(limits.concurrent_calls), 1, 256)?;
    range("queuedCalls", u64::from(limits.queued_calls), 0, 100_000)?;
    range("transferBytes", limits.transfer_bytes, 1 << 20, 512 << 20)?;
    range("logBytes", limits.log_bytes, 0, 1 << 20)?;
    range("directoryFiles", limits.directory_files, 1, 10_000_000)?;
    range("callsPerSecond", u64::from(limits.calls_per_second), 0, 1_000_000)
}
