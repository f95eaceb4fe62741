//! Which build a binding gets, and zero configuration: a company that never had a binding gets the
//! built-in provider as its default.

use async_recursion::async_recursion as boxed;

use crate::Operations;
use memhost_access::Caller;
use memhost_registry::BindingError;
use memhost_registry::bindings::{NewBinding, Resolution};
use memhost_registry::plugins::{Build as _, LOCAL_MARKDOWN_KEY, Plugin, PluginError};
use memhost_registry::versions::newest;
use memhost_tenancy::ServiceError;
use memhost_types::{
    BindingKey, BindingLimits, BindingPolicy, CompanyId, HookEvent, JsonObject, Permission,
    ProviderKey, Refusal, Scope, VersionChoice,
};

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

    /// Zero configuration for an event, as for an operation.
    ///
    /// # Errors
    /// Where the company is unknown, was erased or is being imported.
    #[boxed]
    pub async fn ensure_default(
        &self,
        caller: &Caller,
        event: &HookEvent,
    ) -> Result<(), ServiceError> {
        let (scope, named) = (&event.scope, event.binding_key.as_ref());
        self.tenancy.usable(caller, &scope.company_id).await?;
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
        match self.make_default(company).await {
            // Another operation of the same company may have been first.
            Ok(()) | Err(ServiceError::Binding(BindingError::Exists { .. })) => {
                Ok(self.bindings.resolve(company, scope.agent_id.as_ref(), None)?)
            }
            Err(error) => Err(Refusal::host(error)),
        }
    }

    #[boxed]
    async fn make_default(&self, company: &CompanyId) -> Result<(), ServiceError> {
        let provider_key: ProviderKey = LOCAL_MARKDOWN_KEY.parse().map_err(ServiceError::host)?;
        let (version, config) = (VersionChoice::default(), JsonObject::new());
        let plugin = self.build_for(&provider_key, &version).await?;
        if !plugin.is_present() {
            return Err(self.no_provider(&provider_key));
        }
        let limits = BindingLimits::default();
        self.check_config(company, &plugin, &config, &limits).await?;
        let new = NewBinding {
            key: "default".parse().map_err(ServiceError::host)?,
            provider_key,
            version,
            grants: self.serving.default_grants(&plugin),
            reviewed: requested(&plugin, &config),
            config,
            limits,
            policy: BindingPolicy::default(),
            make_default: true,
        };
        let binding = self.bindings.create(Caller::operator().principal(), company, new).await?;
        tracing::info!(%company, binding = %binding.key, provider = %binding.provider_key, "a \
            binding was made");
        self.ask_health(&binding).await;
        Ok(())
    }
}
