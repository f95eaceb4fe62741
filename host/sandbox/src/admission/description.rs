//! Checks a component's description of itself before anything uses it.

use semver::Version;

use crate::contract::{OptionalInterface, provider as wire};
use crate::error::AdmissionError;
use memhost_types::{
    HttpPermission, OriginError, Permission, PermissionRequest, ProviderCapabilities, ProviderDescription, ProviderKey,
    TextId, limits,
};

/// A placeholder until `describe` has answered; it never leaves admission.
pub(super) fn undescribed() -> Result<ProviderDescription, AdmissionError> {
    let provider_key = ProviderKey::parse("undescribed")
        .map_err(|error| AdmissionError::Description { field: "providerKey", message: error.problem })?;
    Ok(ProviderDescription {
        provider_key,
        name: String::new(),
        version: Version::new(0, 0, 0),
        summary: String::new(),
        config_schema: None,
        capabilities: ProviderCapabilities::default(),
        max_concurrency: 1,
        permissions: Vec::new(),
    })
}

pub(super) fn check_description(
    answer: wire::Description,
    interfaces: &[OptionalInterface],
) -> Result<ProviderDescription, AdmissionError> {
    fn wrong<T>(field: &'static str, message: impl Into<String>) -> Result<T, AdmissionError> {
        Err(AdmissionError::Description { field, message: message.into() })
    }
    let provider_key = match ProviderKey::parse(&answer.provider_key) {
        Ok(key) => key,
        Err(error) => return wrong("providerKey", error.problem),
    };
    for (field, text, max) in [
        ("name", &answer.name, limits::MAX_RECORD_ID_BYTES),
        ("version", &answer.version, 64),
        ("summary", &answer.summary, limits::MAX_MESSAGE_BYTES),
    ] {
        if text.is_empty() || text.len() > max || text.chars().any(char::is_control) {
            return wrong(field, format!("is not 1 to {max} printable bytes"));
        }
    }
    let version = match Version::parse(&answer.version) {
        Ok(version) => version,
        Err(error) => return wrong("version", format!("is not a semantic version: {}: {error}", answer.version)),
    };
    let config_schema = match answer.config_schema.as_deref().map(serde_json::from_str).transpose() {
        Ok(schema) => schema,
        Err(error) => return wrong("configSchema", format!("is not JSON: {error}")),
    };
    if answer.max_concurrency == 0 {
        return wrong("maxConcurrency", "is 0; at least 1 is needed");
    }
    if answer.permissions.len() > 64 {
        return wrong("permissions", format!("asks for {} things; at most 64 are allowed", answer.permissions.len()));
    }
    let has = |interface| interfaces.contains(&interface);
    Ok(ProviderDescription {
        provider_key,
        name: answer.name,
        version,
        summary: answer.summary,
        config_schema,
        capabilities: ProviderCapabilities {
            profile: has(OptionalInterface::Profile),
            correction: has(OptionalInterface::Correction),
            multimodal: answer.capabilities.multimodal,
            provider_managed_extraction: answer.capabilities.provider_managed_extraction,
            async_extraction: answer.capabilities.async_extraction,
            provider_native_browse: has(OptionalInterface::Browse),
        },
        max_concurrency: answer.max_concurrency,
        permissions: answer.permissions.into_iter().map(permission_request).collect::<Result<_, _>>()?,
    })
}

fn permission_request(request: wire::PermissionRequest) -> Result<PermissionRequest, AdmissionError> {
    let permission = match request.permission {
        wire::Permission::Storage(bytes) => Permission::Storage(bytes),
        wire::Permission::Directory(bytes) => Permission::Directory(bytes),
        wire::Permission::Embeddings => Permission::Embeddings,
        wire::Permission::Http(http) => {
            let origin = http.origin.parse().map_err(|error: OriginError| AdmissionError::Description {
                field: "permissions",
                message: format!("asks for an origin that is none: {error}"),
            })?;
            Permission::Http(HttpPermission { origin, methods: http.methods })
        }
        wire::Permission::Secret(name) => Permission::Secret(name),
        wire::Permission::Clock => Permission::Clock,
    };
    let reason = memhost_types::cut_message(request.reason);
    Ok(PermissionRequest { permission, reason, optional: request.optional })
}
