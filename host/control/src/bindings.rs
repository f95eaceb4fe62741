//! The control plane of bindings: creating, changing and deleting them, their grants and
//! assignments.

use async_recursion::async_recursion as boxed;
use schemars::JsonSchema;
use serde::Deserialize;

pub use self::view::{
    AskedView, BindingView, BuildView, GrantsView, ResolvedView, UsageView, WaitingView,
};
use crate::Control;
use crate::deletion;
use memhost_access::{Act, Caller};
use memhost_operations::requested;
use memhost_registry::NewActivity;
use memhost_registry::bindings::{NewBinding, check_asked, check_grants};
use memhost_registry::plugins::{Build as _, Plugin, PluginSource};
use memhost_tenancy::ServiceError;
use memhost_types::{
    ActivityAction, AgentId, Binding, BindingKey, BindingLimits, BindingPolicy, CompanyId, Grants,
    JsonObject, ProviderKey, RequestedGrants, Target, VersionChoice,
};

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

impl Control {
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
            self.tenancy.allow_new(caller, Act::Grant, company).await?;
        }
        self.bindings.check_room(company, &request.key)?;
        request.policy.check()?;
        request.version.check()?;
        let plugin = self.operations.build_for(&request.provider_key, &request.version).await?;
        if !plugin.is_present() && matches!(request.version, VersionChoice::Follow(_)) {
            return Err(self.operations.no_provider(&request.provider_key));
        }
        self.operations.check_config(company, &plugin, &request.config, &request.limits).await?;
        let grants = request.grants.unwrap_or_else(|| self.serving.default_grants(&plugin));
        check_grants(&grants)?;
        check_asked(&grants, described(&plugin), &request.config, &Grants::default())?;
        let reviewed = requested(&plugin, &request.config);
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
            id: None,
        };
        let binding = self.bindings.create(caller.principal(), company, new).await?;
        tracing::info!(%company, binding = %binding.key, provider = %binding.provider_key, "a \
            binding was made");
        self.operations.ask_health(&binding).await;
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
            self.tenancy.allow(caller, Act::Grant, Some(company)).await?;
        }
        if let Some(policy) = &request.policy {
            policy.check()?;
        }
        request.version.as_ref().map_or(Ok(()), VersionChoice::check)?;
        let version = request.version.as_ref().unwrap_or(&present.version);
        let config = request.config.as_ref().unwrap_or(&present.config);
        let limits = request.limits.as_ref().unwrap_or(&present.limits);
        if request.version.is_some() || request.config.is_some() || request.limits.is_some() {
            let plugin = self.operations.build_for(&present.provider_key, version).await?;
            self.operations.check_config(company, &plugin, config, limits).await?;
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
        self.tenancy.note_forgetting().await?;
        let deleted =
            self.bindings.delete(company, (key, present.id), revision, caller.principal()).await?;
        // No call may use the storage when it is removed.
        self.serving.close(deleted.id).await;
        let registry = (&*self.bindings, &*self.serving);
        deletion::finish(&*self.store, registry, Some(&self.reviews), &deleted).await?;
        self.oplog.ledger.forget_binding(&deleted).await?;
        self.records.forget_binding(deleted.id);
        self.oplog.recent.forget(company, key);
        self.tenancy.note_forgetting().await?;
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
        let plugin = self.operations.build_for(&present.provider_key, &present.version).await?;
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
            binding.reviewed = requested(&plugin, &binding.config);
            binding.requested = None;
        };
        let binding = self.bindings.update(company, key, revision, by, change).await?;
        self.go_on_waiting();
        self.operations.ask_health(&binding).await;
        self.grants(company, key).await
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
    ///
    /// # Errors
    /// Where the provider is not loaded or does not accept the configuration or the limits.
    #[boxed]
    pub async fn can_be_served(&self, binding: &Binding) -> Result<(), ServiceError> {
        let plugin = self.operations.build_for(&binding.provider_key, &binding.version).await?;
        self.operations
            .check_config(&binding.company_id, &plugin, &binding.config, &binding.limits)
            .await
    }

    /// Makes a request of what an imported binding may reach and use, unless an operator accepts
    /// it. A binding gets what a new one of its provider gets. If it had more, its own provider's
    /// permissions are undecided, too.
    ///
    /// # Errors
    /// Where a grant or a limit is not valid, or the provider is not loaded.
    #[boxed]
    pub async fn request_grants(
        &self,
        binding: &mut Binding,
        accepts: bool,
    ) -> Result<(), ServiceError> {
        let had =
            RequestedGrants { grants: std::mem::take(&mut binding.grants), limits: binding.limits };
        let wanted = binding.requested.take().unwrap_or(had);
        check_grants(&wanted.grants)?;
        wanted.limits.check(self.sandbox.options().max_memory_bytes)?;
        let plugin = self.operations.build_for(&binding.provider_key, &binding.version).await?;
        let own = self.serving.default_grants(&plugin);
        binding.reviewed = requested(&plugin, &binding.config);
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
}

/// A build with the key of its provider.
fn described(plugin: &Plugin) -> (&ProviderKey, &Plugin) {
    (&plugin.component.description().provider_key, plugin)
}
