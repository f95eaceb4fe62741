//! Checks of a binding's configuration and limits.

use crate::Control;
use memhost_registry::plugins::Plugin;
use memhost_sandbox::{Component, InstanceSetup, Instances, Sandbox};
use memhost_tenancy::ServiceError;
use memhost_types::{BindingLimits, JsonObject, Permission, ProviderDescription};
use serde_json::Value;

impl Control {
    /// Asks the provider, in a sandbox without grants, whether it accepts the configuration.
    pub(crate) async fn check(
        &self,
        plugin: &Plugin,
        config: &JsonObject,
        limits: &BindingLimits,
    ) -> Result<(), ServiceError> {
        limits.check(self.sandbox.options().max_memory_bytes)?;
        memhost_types::check_json("config", Some(config))?;
        check_schema(&self.sandbox, plugin.component.description(), config).await?;
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

/// Checks a configuration against the provider's JSON Schema, if it has one.
async fn check_schema(
    sandbox: &Sandbox,
    description: &ProviderDescription,
    config: &JsonObject,
) -> Result<(), ServiceError> {
    let Some(schema) = &description.config_schema else { return Ok(()) };
    let config = Value::Object(config.clone());
    let found = sandbox.config_errors(schema, &config).await;
    let found = found.map_err(|message| {
        let key = &description.provider_key;
        let message = format!(
            "the schema of the provider `{key}` cannot be used: {message}; tell its author"
        );
        ServiceError::Config { errors: vec![(String::new(), message)] }
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
