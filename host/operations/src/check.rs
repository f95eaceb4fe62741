//! Checks of a binding's configuration and limits.

use async_recursion::async_recursion as boxed;

use crate::Operations;
use memhost_executor::in_turn;
use memhost_registry::plugins::Plugin;
use memhost_sandbox::{Component, ConfigCheckError, InstanceSetup, Instances};
use memhost_tenancy::ServiceError;
use memhost_types::{BindingLimits, CompanyId, JsonObject, Permission, ProviderDescription};
use serde_json::Value;

impl Operations {
    /// Checks what a binding of a build is to have, and asks the provider, in a sandbox without
    /// grants, whether it accepts the configuration.
    ///
    /// # Errors
    /// Where the provider or its schema does not accept it, or the limits are above the host's.
    #[boxed]
    pub async fn check_config(
        &self,
        company: &CompanyId,
        plugin: &Plugin,
        config: &JsonObject,
        limits: &BindingLimits,
    ) -> Result<(), ServiceError> {
        limits.check(self.sandbox.options().max_memory_bytes)?;
        memhost_types::check_json("config", Some(config))?;
        self.check_schema(company, plugin.component.description(), config).await?;
        check_origins(plugin.component.description(), config)?;
        let config = serde_json::to_string(config).unwrap_or_default();
        self.validate_config(&plugin.component, config).await
    }

    async fn validate_config(
        &self,
        component: &Component,
        config: String,
    ) -> Result<(), ServiceError> {
        let setup = InstanceSetup::without_grants(BindingLimits {
            call_timeout_ms: 2_000,
            call_cpu_ms: 1_000,
            ..BindingLimits::default()
        });
        let instances = Instances::new(&self.sandbox, component, setup);
        let errors = instances.validate_config(config).await.map_err(|failure| failure.error)?;
        if errors.is_empty() { Ok(()) } else { Err(ServiceError::Config { errors }) }
    }

    /// Checks a configuration against the provider's JSON Schema, if it has one. Checks take long
    /// where a schema asks for much, so companies take turns.
    async fn check_schema(
        &self,
        company: &CompanyId,
        description: &ProviderDescription,
        config: &JsonObject,
    ) -> Result<(), ServiceError> {
        let Some(schema) = &description.config_schema else { return Ok(()) };
        let config = Value::Object(config.clone());
        let check = self.sandbox.config_errors(schema, &config);
        let found = in_turn(company.as_str(), usize::MAX, check).await;
        let found = found.map_err(|error| match error {
            ConfigCheckError::Schema(message) => {
                let key = &description.provider_key;
                let message = format!(
                    "the schema of the provider `{key}` cannot be used: {message}; tell its author"
                );
                ServiceError::Config { errors: vec![(String::new(), message)] }
            }
            error @ ConfigCheckError::Host(_) => ServiceError::host(error),
        })?;
        if found.is_empty() {
            return Ok(());
        }
        let errors = found
            .into_iter()
            .map(|error| (error.path, memhost_types::cut_message(error.message)))
            .collect();
        Err(ServiceError::Config { errors })
    }
}

/// Checks that what a configuration says of the provider's addresses is an address. Where it says
/// nothing, the provider decides whether it can do without.
fn check_origins(
    description: &ProviderDescription,
    config: &JsonObject,
) -> Result<(), ServiceError> {
    let http = description.permissions.iter().filter_map(|request| match &request.permission {
        Permission::Http(http) => http.origin.resolve(config).err(),
        _ => None,
    });
    let errors: Vec<_> =
        http.filter(|wrong| !wrong.is_absent).map(|wrong| (wrong.pointer, wrong.message)).collect();
    if errors.is_empty() { Ok(()) } else { Err(ServiceError::Config { errors }) }
}
