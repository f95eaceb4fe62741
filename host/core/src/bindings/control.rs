//! The control plane of bindings: creating, changing and deleting them, their grants, and zero
//! configuration.

use async_recursion::async_recursion as boxed;
use schemars::JsonSchema;
use serde::Deserialize;

pub use self::view::{
    AskedView, BindingView, BuildView, GrantsView, ResolvedView, UsageView, WaitingView,
};
use crate::Service;
use crate::access::{Act, Caller};
use crate::bindings::deletion;
use crate::error::ServiceError;
use memhost_registry::bindings::{NewBinding, Resolution, check_asked, check_grants};
use memhost_registry::plugins::{
    Build as _, LOCAL_MARKDOWN_KEY, Plugin, PluginError, PluginSource,
};
use memhost_registry::versions::newest;
use memhost_registry::{BindingError, NewActivity};
use memhost_types::{
    ActivityAction, AgentId, Binding, BindingKey, BindingLimits, BindingPolicy, CompanyId, Grants,
    HookEvent, JsonObject, Permission, ProviderKey, Refusal, RequestedGrants, Scope, Target,
    VersionChoice,
};

mod check;
mod view;

/// A request to make a binding.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
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
    #[schemars(transform = memhost_types::schema::free_json)]
    pub config: JsonObject,
    /// What the provider may reach. Absent: what the built-in provider asks for, nothing for any
    /// other.
    #[serde(default)]
    pub grants: Option<Grants>,
    /// The provider's limits; the defaults if absent.
    #[serde(default)]
    pub limits: BindingLimits,
    /// Its rules for the data that passes; the defaults if absent.
    #[serde(default)]
    pub policy: BindingPolicy,
    /// Whether it becomes the company's default at once.
    #[serde(default)]
    pub default: bool,
}

/// A request to change a binding. What is absent stays as it is.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct UpdateBinding {
    /// The revision that the caller has seen; another one is a conflict.
    pub revision: Option<u64>,
    /// Which versions of its provider.
    pub version: Option<VersionChoice>,
    /// The provider's configuration, as a whole.
    #[schemars(transform = memhost_types::schema::free_json)]
    pub config: Option<JsonObject>,
    /// The provider's limits, as a whole.
    pub limits: Option<BindingLimits>,
    /// Its rules for the data that passes, as a whole.
    pub policy: Option<BindingPolicy>,
    /// Whether it takes operations.
    pub enabled: Option<bool>,
}

/// A request to assign a binding to the company or to an agent.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("required" = ["bindingKey"]))]
pub struct SetTarget {
    /// Absent: the company's default.
    #[serde(default)]
    pub agent_id: Option<AgentId>,
    /// Which binding; null removes the assignment. The field is required.
    #[serde(deserialize_with = "Option::deserialize")]
    pub binding_key: Option<BindingKey>,
}

impl Service {
    /// Makes a binding, if its provider accepts the configuration.
    ///
    /// # Errors
    /// Where the provider is not loaded or does not accept the configuration, or the key is taken.
    #[boxed]
    pub async fn create_binding(
        &self,
        caller: &Caller,
        company: &CompanyId,
        request: CreateBinding,
    ) -> Result<BindingView, ServiceError> {
        // Setting grants and limits is a right of its own.
        if request.grants.is_some() || request.limits != BindingLimits::default() {
            self.allow_new(caller, Act::Grant, company).await?;
        }
        self.bindings.check_room(company, &request.key)?;
        request.policy.check()?;
        request.version.check()?;
        let plugin = self.build_for(&request.provider_key, &request.version).await?;
        if !plugin.is_present() && matches!(request.version, VersionChoice::Follow(_)) {
            return Err(self.no_provider(&request.provider_key));
        }
        self.check(company, &plugin, &request.config, &request.limits).await?;
        let grants = request.grants.unwrap_or_else(|| self.serving.default_grants(&plugin));
        check_grants(&grants)?;
        check_asked(&grants, described(&plugin), &request.config, &Grants::default())?;
        let reviewed = asked(&plugin, &request.config);
        let new = NewBinding {
            key: request.key,
            provider_key: request.provider_key,
            version: request.version,
            config: request.config,
            grants,
            reviewed,
            limits: request.limits,
            policy: request.policy,
            make_default: request.default,
        };
        let binding = self.bindings.create(caller.principal(), company, new).await?;
        tracing::info!(%company, binding = %binding.key, provider = %binding.provider_key, "a \
            binding was made");
        self.ask_health(&binding).await;
        self.binding(company, &binding.key).await
    }

    /// Changes a binding, if its provider accepts the configuration.
    ///
    /// # Errors
    /// Where there is none of this key, it was changed meanwhile, or the provider does not accept
    /// the configuration.
    #[boxed]
    pub async fn update_binding(
        &self,
        caller: &Caller,
        company: &CompanyId,
        key: &BindingKey,
        request: UpdateBinding,
    ) -> Result<BindingView, ServiceError> {
        let present = self.bindings.get(company, key)?;
        if request.limits.is_some_and(|limits| limits != present.limits) {
            self.allow(caller, Act::Grant, Some(company)).await?;
        }
        if let Some(policy) = &request.policy {
            policy.check()?;
        }
        request.version.as_ref().map_or(Ok(()), VersionChoice::check)?;
        let version = request.version.as_ref().unwrap_or(&present.version);
        let config = request.config.as_ref().unwrap_or(&present.config);
        let limits = request.limits.as_ref().unwrap_or(&present.limits);
        if request.version.is_some() || request.config.is_some() || request.limits.is_some() {
            let plugin = self.build_for(&present.provider_key, version).await?;
            self.check(company, &plugin, config, limits).await?;
        }
        let by = (caller.principal(), ActivityAction::BindingChanged);
        let change = |binding: &mut Binding| {
            binding.version = request.version.unwrap_or_else(|| binding.version.clone());
            binding.config = request.config.unwrap_or_else(|| std::mem::take(&mut binding.config));
            binding.limits = request.limits.unwrap_or(binding.limits);
            binding.policy = request.policy.unwrap_or_else(|| std::mem::take(&mut binding.policy));
            binding.enabled = request.enabled.unwrap_or(binding.enabled);
        };
        // The right to change the limits was checked against this revision.
        let revision = request.revision.or_else(|| request.limits.map(|_| present.revision));
        self.bindings.update(company, key, revision, by, change).await?;
        self.go_on_waiting();
        self.binding(company, key).await
    }

    /// Deletes a binding, with what its provider has stored through the host. Waits until the calls
    /// that run have ended. What the provider keeps elsewhere stays there: forget it first.
    ///
    /// # Errors
    /// Where there is none of this key or it was changed meanwhile.
    #[boxed]
    pub async fn delete_binding(
        &self,
        caller: &Caller,
        company: &CompanyId,
        key: &BindingKey,
        revision: Option<u64>,
    ) -> Result<(), ServiceError> {
        let present = self.bindings.get(company, key)?;
        let _lock = self.serving.lock(present.id).await?;
        self.note_forgetting().await?;
        let deleted =
            self.bindings.delete(company, (key, present.id), revision, caller.principal()).await?;
        // No call may use the storage when it is removed.
        self.serving.close(deleted.id).await;
        let registry = (&*self.bindings, &self.serving);
        deletion::finish(&*self.store, registry, Some(&self.reviews), &deleted).await?;
        self.records.forget_binding(deleted.id);
        self.note_forgetting().await?;
        tracing::info!(%company, binding = %key, by = %caller.principal(), "a binding was deleted");
        Ok(())
    }

    /// Sets what a binding's provider may reach. What its newest build asks for counts as reviewed.
    ///
    /// # Errors
    /// Where there is none of this key or a grant is not valid.
    #[boxed]
    pub async fn set_grants(
        &self,
        caller: &Caller,
        company: &CompanyId,
        key: &BindingKey,
        revision: Option<u64>,
        grants: Grants,
    ) -> Result<GrantsView, ServiceError> {
        check_grants(&grants)?;
        let present = self.bindings.get(company, key)?;
        let plugin = self.build_for(&present.provider_key, &present.version).await?;
        // What an import asks for may be accepted as it is.
        let mut known = present.grants.clone();
        known
            .http
            .extend(present.requested.iter().flat_map(|requested| requested.grants.http.clone()));
        check_asked(&grants, described(&plugin), &present.config, &known)?;
        let by = (caller.principal(), ActivityAction::GrantsChanged);
        // What was checked against this configuration is not granted to another one.
        let revision = revision.or_else(|| (!grants.http.is_empty()).then_some(present.revision));
        let change = |binding: &mut Binding| {
            binding.grants = grants;
            binding.reviewed = asked(&plugin, &binding.config);
            binding.requested = None;
        };
        let binding = self.bindings.update(company, key, revision, by, change).await?;
        self.go_on_waiting();
        self.ask_health(&binding).await;
        self.grants(company, key)
    }

    /// Assigns a binding to the company or to an agent, or removes the assignment.
    ///
    /// # Errors
    /// Where there is no such binding, or too many agents have one of their own.
    #[boxed]
    pub async fn set_target(
        &self,
        caller: &Caller,
        company: &CompanyId,
        request: SetTarget,
    ) -> Result<(), ServiceError> {
        if let (Some(agent), Some(_)) = (&request.agent_id, &request.binding_key) {
            self.bindings.check_target_room(company, agent)?;
        }
        let target = request.agent_id.map_or(Target::Company, Target::Agent);
        Ok(self
            .bindings
            .set_target(caller.principal(), company, target, request.binding_key.as_ref())
            .await?)
    }

    /// Closes a binding's circuit breaker. Builds that were rejected may be tried again.
    ///
    /// # Errors
    /// Where there is none of this key or the store fails.
    #[boxed]
    pub async fn reset_binding(
        &self,
        caller: &Caller,
        company: &CompanyId,
        key: &BindingKey,
    ) -> Result<BindingView, ServiceError> {
        let binding = self.bindings.get(company, key)?;
        self.serving.reset(&binding).await?;
        let entry =
            NewActivity::new(caller.principal(), ActivityAction::BindingReset, key.as_str());
        self.activity.record(company, entry).await?;
        self.binding(company, key).await
    }

    /// Whether a binding that came from another host can be served by this one.
    pub(crate) async fn can_be_served(&self, binding: &Binding) -> Result<(), ServiceError> {
        let plugin = self.build_for(&binding.provider_key, &binding.version).await?;
        self.check(&binding.company_id, &plugin, &binding.config, &binding.limits).await
    }

    /// Makes a request of what an imported binding may reach and use, unless an operator accepts
    /// it. A binding gets what a new one of its provider gets. If it had more, its own provider's
    /// permissions are undecided, too.
    pub(crate) async fn request_grants(
        &self,
        binding: &mut Binding,
        accepts: bool,
    ) -> Result<(), ServiceError> {
        let had =
            RequestedGrants { grants: std::mem::take(&mut binding.grants), limits: binding.limits };
        let wanted = binding.requested.take().unwrap_or(had);
        check_grants(&wanted.grants)?;
        wanted.limits.check(self.sandbox.options().max_memory_bytes)?;
        let plugin = self.build_for(&binding.provider_key, &binding.version).await?;
        let own = self.serving.default_grants(&plugin);
        binding.reviewed = asked(&plugin, &binding.config);
        if accepts || (wanted.grants.is_within(&own) && wanted.limits == BindingLimits::default()) {
            (binding.grants, binding.limits) = (wanted.grants, wanted.limits);
            return Ok(());
        }
        if !wanted.grants.is_within(&own) && plugin.source != PluginSource::Builtin {
            binding.reviewed.clear();
        }
        (binding.grants, binding.limits) = (own, BindingLimits::default());
        binding.requested = Some(wanted);
        Ok(())
    }

    /// No build of this provider is there. Says the nearest key of one that is.
    fn no_provider(&self, key: &ProviderKey) -> ServiceError {
        let all = self.plugins.list();
        let known = all.iter().filter(|plugin| plugin.is_present());
        let known = known.map(|plugin| plugin.component.description().provider_key.as_str());
        let near = memhost_types::nearest(key.as_str(), known).map(str::to_owned);
        ServiceError::NoProvider { key: key.to_string(), near }
    }

    /// The newest build that the choice allows.
    async fn build_for(
        &self,
        key: &ProviderKey,
        version: &VersionChoice,
    ) -> Result<Plugin, ServiceError> {
        let loading = || ServiceError::ProviderLoading { key: key.to_string() };
        let found = match version {
            VersionChoice::Pin(digest) => {
                let pinned = self.plugins.build(*digest).await;
                if let Err(PluginError::Admitting { .. }) = pinned {
                    return Err(loading());
                }
                let pinned = pinned.ok();
                pinned.filter(|build| build.component.description().provider_key == *key)
            }
            VersionChoice::Follow(_) => {
                let builds = self.plugins.builds(key);
                if builds.is_empty() && !self.plugins.is_idle() {
                    return Err(loading());
                }
                if builds.is_empty() {
                    return Err(self.no_provider(key));
                }
                newest(&builds, version).cloned()
            }
        };
        found.ok_or_else(|| ServiceError::NoVersion {
            key: key.to_string(),
            choice: version.to_string(),
        })
    }

    /// Zero configuration for an event, as for an operation.
    pub(crate) async fn ensure_default(
        &self,
        caller: &Caller,
        event: &HookEvent,
    ) -> Result<(), ServiceError> {
        let (scope, named) = (&event.scope, event.binding_key.as_ref());
        self.usable(caller, &scope.company_id).await?;
        let resolved = self.bindings.resolve(&scope.company_id, scope.agent_id.as_ref(), named);
        if let Err(error @ BindingError::NoDefault { .. }) = resolved {
            // Where it fails, bindings that subscribe to every event still get it.
            drop(self.resolve_without_config(scope, named, error).await);
        }
        Ok(())
    }

    /// Zero configuration: a company that never had a binding gets the built-in provider as its
    /// default.
    pub(crate) async fn resolve_without_config(
        &self,
        scope: &Scope,
        named: Option<&BindingKey>,
        error: BindingError,
    ) -> Result<Resolution, Refusal> {
        let company = &scope.company_id;
        if !self.zero_config || named.is_some() {
            return Err(error.into());
        }
        if !self.bindings.list(company).is_empty() {
            // Another operation may have made the default since this one looked.
            return Ok(self.bindings.resolve(company, scope.agent_id.as_ref(), None)?);
        }
        let request = CreateBinding {
            key: "default".parse().map_err(Refusal::host)?,
            provider_key: LOCAL_MARKDOWN_KEY.parse().map_err(Refusal::host)?,
            version: VersionChoice::default(),
            config: JsonObject::new(),
            grants: None,
            limits: BindingLimits::default(),
            policy: BindingPolicy::default(),
            default: true,
        };
        match self.create_binding(&Caller::operator(), company, request).await {
            // Another operation of the same company may have been first.
            Ok(_) | Err(ServiceError::Binding(BindingError::Exists { .. })) => {
                Ok(self.bindings.resolve(company, scope.agent_id.as_ref(), None)?)
            }
            Err(error) => Err(Refusal::host(error)),
        }
    }
}

/// A build with the key of its provider.
fn described(plugin: &Plugin) -> (&ProviderKey, &Plugin) {
    (&plugin.component.description().provider_key, plugin)
}

fn asked(plugin: &Plugin, config: &JsonObject) -> Vec<Permission> {
    plugin.requests(config).into_iter().map(|request| request.permission).collect()
}
