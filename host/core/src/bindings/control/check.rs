//! Checks of a binding's configuration, limits and grants.

use crate::Service;
use crate::error::ServiceError;
use crate::plugins::Plugin;
use crate::versions::asked::asked_by;
use memhost_executor::in_turn;
use memhost_sandbox::{Component, InstanceSetup, Instances};
use memhost_types::{
    BindingLimits, CompanyId, FieldError, Grants, JsonObject, Permission, ProviderDescription,
};
use serde_json::Value;

impl Service {
    /// Asks the provider, in a sandbox without grants, whether it accepts the configuration.
    pub(crate) async fn check(
        &self,
        company: &CompanyId,
        plugin: &Plugin,
        config: &JsonObject,
        limits: &BindingLimits,
    ) -> Result<(), ServiceError> {
        limits.check(self.sandbox.options().max_memory_bytes)?;
        memhost_types::check_json("config", Some(config))?;
        check_schema(company, plugin.component.description(), config).await?;
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

pub(crate) fn check_grants(grants: &Grants) -> Result<(), FieldError> {
    const MOST: usize = memhost_types::limits::MAX_FEW;
    let wrong =
        |field: String, message: String| Err(FieldError::new(format!("grants.{field}"), message));
    for (name, count) in [("http", grants.http.len()), ("secrets", grants.secrets.len())] {
        if count > MOST {
            return wrong(
                name.to_owned(),
                format!("has {count} entries; at most {MOST} are allowed"),
            );
        }
    }
    for (index, http) in grants.http.iter().enumerate() {
        if http.methods.len() > MOST {
            let message = format!("has {} entries; at most {MOST} are allowed", http.methods.len());
            return wrong(format!("http.{index}.methods"), message);
        }
        if let Some(method) =
            http.methods.iter().find(|method| !is_token(method, |byte| byte.is_ascii_uppercase()))
        {
            let shown = method.chars().take(64).collect::<String>();
            let message =
                format!("has `{}`; give methods in capitals, such as GET", shown.escape_debug());
            return wrong(format!("http.{index}.methods"), message);
        }
        if http.private_ranges.len() > MOST {
            let message =
                format!("has {} entries; at most {MOST} are allowed", http.private_ranges.len());
            return wrong(format!("http.{index}.privateRanges"), message);
        }
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if let Some(index) = grants.secrets.iter().position(|name| !is_token(name, is_name)) {
        let message = "is no name; 1 to 64 letters, digits, `_` and `-` are allowed".to_owned();
        return wrong(format!("secrets.{index}"), message);
    }
    Ok(())
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

/// Refuses a new grant for an address that the provider does not ask for: no request would ever go
/// there.
pub(crate) fn check_asked(
    grants: &Grants,
    plugin: &Plugin,
    config: &JsonObject,
    before: &Grants,
) -> Result<(), FieldError> {
    let asked = asked_by(plugin, config);
    let Some((index, grant)) = grants.unasked_origin(&asked, before) else { return Ok(()) };
    let origins = asked.iter().filter_map(|request| match &request.permission {
        Permission::Http(http) => Some(http.origin.to_string()),
        _ => None,
    });
    let origins: Vec<_> = origins.collect();
    let (key, origin) = (&plugin.component.description().provider_key, &grant.origin);
    let message = match origins.is_empty() {
        true => format!("is {origin}, and the provider `{key}` asks for no address; leave it out"),
        false => format!(
            "is {origin}, and the provider `{key}` asks for {}; grant that",
            origins.join(", ")
        ),
    };
    Err(FieldError::new(format!("grants.http.{index}.origin"), message))
}

fn is_token(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(allowed)
}

/// Checks a configuration against the provider's JSON Schema, if it has one.
async fn check_schema(
    company: &CompanyId,
    description: &ProviderDescription,
    config: &JsonObject,
) -> Result<(), ServiceError> {
    let Some(schema) = &description.config_schema else { return Ok(()) };
    let config = Value::Object(config.clone());
    let check = async { memhost_config_schema::errors(schema, &config) };
    let found = in_turn(company.as_str(), usize::MAX, check).await;
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
