//! Which build a binding gets, and who answers for a company where nobody has decided that: the
//! built-in provider. A read stores nothing of it; the first write makes it a binding.

use std::sync::Arc;

use async_recursion::async_recursion as boxed;

use crate::Operations;
use memhost_access::Caller;
use memhost_registry::BindingError;
use memhost_registry::bindings::NewBinding;
use memhost_registry::plugins::{Build as _, LOCAL_MARKDOWN_KEY, Plugin, PluginError};
use memhost_registry::versions::newest;
use memhost_tenancy::ServiceError;
use memhost_types::{
    Binding, BindingId, BindingKey, BindingLimits, BindingPolicy, CompanyId, HookEvent, HookKind,
    JsonObject, Operation, Permission, Principal, ProviderKey, Refusal, VersionChoice,
};

/// The key of the binding that a company has without anybody's doing.
const DEFAULT_KEY: &str = "default";

/// The permissions that a build requests with a configuration.
pub fn requested(plugin: &Plugin, config: &JsonObject) -> Vec<Permission> {
    plugin.requests(config).into_iter().map(|request| request.permission).collect()
}

impl Operations {
    /// No build of this provider is there. Says the nearest key of one that is.
    pub fn no_provider(&self, key: &ProviderKey) -> ServiceError {
        let all = self.plugins.list();
        let known = all.iter().filter(|plugin| plugin.is_present());
        let known = known.map(|plugin| plugin.component.description().provider_key.as_str());
        let near = memhost_types::nearest(key.as_str(), known).map(str::to_owned);
        ServiceError::NoProvider { key: key.to_string(), near }
    }

    /// The newest build that the choice allows.
    ///
    /// # Errors
    /// Where there is none, or it may be among those that are being compiled.
    #[boxed]
    pub async fn build_for(
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

    /// The binding that answers where nobody has decided who does: the built-in provider, under the
    /// key `default`. It is not stored. `None`: somebody has decided, or another key is named.
    ///
    /// # Errors
    /// Where the built-in provider is not loaded.
    #[boxed]
    pub async fn implied_default(
        &self,
        company: &CompanyId,
        named: Option<&BindingKey>,
    ) -> Result<Option<Arc<Binding>>, ServiceError> {
        let is_it = named.is_none_or(|key| key.as_str() == DEFAULT_KEY);
        if !self.zero_config || !is_it || !self.bindings.is_undecided(company) {
            return Ok(None);
        }
        let (_, new) = self.built_in(company).await?;
        Ok(Some(Arc::new(self.bindings.implied(company, new))))
    }

    /// Stores that binding before an event is captured with it. Answers whether an event that only
    /// reads needs none: there is nothing to read.
    ///
    /// # Errors
    /// Where the company is unknown, was erased or is being imported.
    #[boxed]
    pub async fn ensure_default(
        &self,
        caller: &Caller,
        event: &HookEvent,
    ) -> Result<bool, ServiceError> {
        let (company, named) = (&event.scope.company_id, event.binding_key.as_ref());
        self.tenancy.usable(caller, company).await?;
        let resolved = self.bindings.resolve(company, event.scope.agent_id.as_ref(), named);
        if resolved.is_ok() || !matches!(self.implied_default(company, named).await, Ok(Some(_))) {
            return Ok(false);
        }
        if event.hook_kind == HookKind::PreRunHydrate {
            return Ok(true);
        }
        // Where it fails, bindings that subscribe to every event still get it.
        drop(self.store_default(caller.principal(), company).await);
        Ok(false)
    }

    /// The binding that answers an operation for which no stored one does. A write stores it.
    pub(crate) async fn answering_default(
        &self,
        operation: &Operation,
        named: Option<&BindingKey>,
        error: BindingError,
    ) -> Result<Arc<Binding>, Refusal> {
        let (company, agent) = (&operation.company_id, operation.scope.agent_id.as_ref());
        match self.implied_default(company, named).await.map_err(Refusal::host)? {
            Some(implied) if !operation.kind.is_write() => return Ok(implied),
            Some(_) => self.store_default(&operation.principal, company).await?,
            None => {}
        }
        // Another operation may have stored it since this one looked.
        let resolved = self.bindings.resolve(company, agent, named);
        Ok(resolved.map_err(|_| error)?.binding)
    }

    async fn store_default(&self, by: &Principal, company: &CompanyId) -> Result<(), Refusal> {
        match self.make_default(by, company).await {
            // Another operation of the same company may have been first.
            Ok(()) | Err(ServiceError::Binding(BindingError::Exists { .. })) => Ok(()),
            Err(error) => Err(Refusal::host(error)),
        }
    }

    #[boxed]
    async fn make_default(&self, by: &Principal, company: &CompanyId) -> Result<(), ServiceError> {
        let (plugin, new) = self.built_in(company).await?;
        self.check_config(company, &plugin, &new.config, &new.limits).await?;
        let binding = self.bindings.create(by, company, new).await?;
        tracing::info!(%company, binding = %binding.key, provider = %binding.provider_key, %by, "a \
            binding was made");
        self.ask_health(&binding).await;
        Ok(())
    }

    async fn built_in(&self, company: &CompanyId) -> Result<(Plugin, NewBinding), ServiceError> {
        let provider_key: ProviderKey = LOCAL_MARKDOWN_KEY.parse().map_err(ServiceError::host)?;
        let (version, config) = (VersionChoice::default(), JsonObject::new());
        let plugin = self.build_for(&provider_key, &version).await?;
        if !plugin.is_present() {
            return Err(self.no_provider(&provider_key));
        }
        let new = NewBinding {
            key: DEFAULT_KEY.parse().map_err(ServiceError::host)?,
            provider_key,
            version,
            grants: self.serving.default_grants(&plugin),
            reviewed: requested(&plugin, &config),
            config,
            limits: BindingLimits::default(),
            policy: BindingPolicy::default(),
            make_default: true,
            id: Some(BindingId::implied_of(company)),
        };
        Ok((plugin, new))
    }
}
