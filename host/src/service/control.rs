//! The control plane: bindings, their targets, the operation log and the providers.

use serde::{Deserialize, Serialize};

use super::error::Refusal;
use super::{Caller, Service, ServiceError};
use crate::bindings::{BindingError, NewBinding, Resolution, Why};
use crate::contract::{
    AgentId, Binding, BindingKey, BindingLimits, CompanyId, FieldError, Grants, JsonObject, Operation, OperationFilter,
    OperationId, OperationPage, ProviderKey, QueryDigest, Scope, Target, limits,
};
use crate::plugins::{LOCAL_MARKDOWN_KEY, Plugin, PluginSource, RefusedPlugin};
use crate::sandbox::{Component, InstanceSetup, Instances};

/// A request to make a binding.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateBinding {
    /// Unique in the company.
    pub key: BindingKey,
    /// Which provider answers.
    pub provider_key: ProviderKey,
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

/// A request to point the company or an agent at a binding.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetTarget {
    /// Absent: the company's default.
    #[serde(default)]
    pub agent_id: Option<AgentId>,
    /// Which binding.
    pub binding_key: BindingKey,
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
}

/// The providers as they are shown.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginView {
    /// Those that can serve.
    pub admitted: Vec<AdmittedPlugin>,
    /// Files that were kept out.
    pub refused: Vec<RefusedPlugin>,
}

/// One provider as it is shown.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmittedPlugin {
    /// Where it came from.
    pub source: PluginSource,
    /// What is known of it.
    #[serde(flatten)]
    pub inspection: crate::sandbox::Inspection,
}

impl Service {
    /// Makes a binding, if its provider accepts the configuration.
    ///
    /// # Errors
    /// Where the provider is not loaded or does not accept the configuration, or the key is taken.
    pub async fn create_binding(
        &self,
        _caller: &Caller,
        company: &CompanyId,
        request: CreateBinding,
    ) -> Result<BindingView, ServiceError> {
        let no_provider = || ServiceError::NoProvider { key: request.provider_key.to_string() };
        let plugin = self.plugins.get(&request.provider_key).ok_or_else(no_provider)?;
        check_limits(&request.limits, self.sandbox.options().max_memory_bytes)?;
        let config = serde_json::to_string(&request.config).unwrap_or_default();
        if config.len() > limits::MAX_JSON_BYTES {
            let message = format!("is larger than {} bytes", limits::MAX_JSON_BYTES);
            return Err(FieldError::new("config", message).into());
        }
        self.validate_config(&plugin.component, config).await?;
        let grants = request.grants.unwrap_or_else(|| default_grants(&plugin));
        let new = NewBinding {
            key: request.key,
            provider_key: request.provider_key,
            config: request.config,
            grants,
            limits: request.limits,
            make_default: request.default,
        };
        let binding = self.bindings.create(company, new).await?;
        tracing::info!(%company, binding = %binding.key, provider = %binding.provider_key, "a binding was made");
        self.binding(company, &binding.key)
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
        let mut view = BindingView { binding: (*binding).clone(), is_default: false, agents: Vec::new() };
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

    /// Points the company or an agent at a binding.
    ///
    /// # Errors
    /// Where there is no such binding.
    pub async fn set_target(
        &self,
        _caller: &Caller,
        company: &CompanyId,
        request: SetTarget,
    ) -> Result<(), ServiceError> {
        let target = request.agent_id.map_or(Target::Company, Target::Agent);
        Ok(self.bindings.set_target(company, target, &request.binding_key).await?)
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

    /// The providers that this host has, and the files that it keeps out.
    pub fn plugins(&self) -> PluginView {
        let admitted = self
            .plugins
            .list()
            .into_iter()
            .map(|plugin| AdmittedPlugin { source: plugin.source, inspection: plugin.component.inspection().clone() })
            .collect();
        PluginView { admitted, refused: self.plugins.refused() }
    }

    /// One operation.
    ///
    /// # Errors
    /// Where the company has none of this id.
    pub fn operation(&self, company: &CompanyId, id: OperationId) -> Result<Operation, ServiceError> {
        self.store.operation(company, id)?.ok_or(ServiceError::NoOperation { id })
    }

    /// Operations that match, newest first.
    ///
    /// # Errors
    /// Where the limit or the cursor will not do.
    pub fn operations(
        &self,
        company: &CompanyId,
        filter: &OperationFilter,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<OperationPage, ServiceError> {
        if limit == 0 || limit > limits::MAX_PAGE {
            return Err(FieldError::new("limit", format!("is {limit}; 1 to {} are allowed", limits::MAX_PAGE)).into());
        }
        let wanted = serde_json::to_vec(filter).unwrap_or_default();
        let digest = QueryDigest::new([b"operations".as_slice(), company.as_str().as_bytes(), &wanted]);
        let before = cursor
            .map(|cursor| {
                let bytes = self.cursors.open(&digest, cursor).ok();
                bytes
                    .and_then(|bytes| Some(u64::from_be_bytes(bytes.try_into().ok()?)))
                    .ok_or_else(|| FieldError::new("cursor", crate::contract::CursorError.to_string()))
            })
            .transpose()?;
        let page = self.store.operations(company, filter, before, limit as usize)?;
        let next_cursor = page.next_before.map(|before| self.cursors.seal(&digest, &before.to_be_bytes()));
        Ok(OperationPage { items: page.operations, next_cursor })
    }

    /// Resolves when everything written so far is on disk.
    ///
    /// # Errors
    /// Where the disk fails.
    pub async fn flush(&self) -> Result<(), ServiceError> {
        Ok(self.store.commit().await?)
    }

    /// Checks the store and reports what does not fit, one line a finding.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn verify_store(&self) -> Result<Vec<String>, ServiceError> {
        Ok(self.store.verify()?)
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
        let host =
            |error: &dyn std::fmt::Display| Refusal::new(crate::contract::OperationErrorCode::Host, error.to_string());
        let provider_key = LOCAL_MARKDOWN_KEY.parse().map_err(|error| host(&error))?;
        let key = "default".parse().map_err(|error| host(&error))?;
        let request = CreateBinding {
            key,
            provider_key,
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
            Err(error) => Err(host(&error)),
        }
    }
}

/// The built-in provider is part of the host and gets what it asks for; anybody else's asks are for an operator.
fn default_grants(plugin: &Plugin) -> Grants {
    match plugin.source {
        PluginSource::Builtin => Grants::all_of(&plugin.component.description().permissions),
        PluginSource::File(_) => Grants::default(),
    }
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
    range("logBytes", limits.log_bytes, 0, 1 << 20)
}
