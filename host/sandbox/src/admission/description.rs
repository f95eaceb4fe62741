//! Checks a component's description of itself before anything uses it.

use semver::Version;

use crate::contract::{OptionalInterface, provider as wire};
use crate::error::AdmissionError;
use memhost_types::{
    Declarations, Exception, HostWork, HttpPermission, OriginError, Permission, PermissionRequest,
    ProviderCapabilities, ProviderDescription, ProviderKey, TextId, limits,
};

/// A placeholder until `describe` has answered; it never leaves admission.
pub(super) fn undescribed() -> Result<ProviderDescription, AdmissionError> {
    let provider_key = ProviderKey::parse("undescribed").map_err(|error| {
        AdmissionError::Description { field: "providerKey", message: error.problem }
    })?;
    Ok(ProviderDescription {
        provider_key,
        name: String::new(),
        version: Version::new(0, 0, 0),
        summary: String::new(),
        config_schema: None,
        capabilities: ProviderCapabilities::default(),
        max_concurrency: 1,
        permissions: Vec::new(),
        declarations: Declarations::default(),
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
        Err(error) => {
            return wrong(
                "version",
                format!("is not a semantic version: {}: {error}", answer.version),
            );
        }
    };
    let config_schema = match answer.config_schema.as_deref().map(serde_json::from_str).transpose()
    {
        Ok(schema) => schema,
        Err(error) => return wrong("configSchema", format!("is not JSON: {error}")),
    };
    if answer.max_concurrency == 0 {
        return wrong("maxConcurrency", "is 0; at least 1 is needed");
    }
    if answer.permissions.len() > 64 {
        return wrong(
            "permissions",
            format!("asks for {} things; at most 64 are allowed", answer.permissions.len()),
        );
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
            multimodal: false,
            provider_managed_extraction: answer.capabilities.provider_managed_extraction,
            async_extraction: answer.capabilities.async_extraction,
            provider_native_browse: has(OptionalInterface::Browse),
        },
        max_concurrency: answer.max_concurrency,
        permissions: answer
            .permissions
            .into_iter()
            .map(permission_request)
            .collect::<Result<_, _>>()?,
        declarations: declarations(answer.declarations)?,
    })
}

fn declarations(answer: wire::Declarations) -> Result<Declarations, AdmissionError> {
    let wrong = |message: String| AdmissionError::Description { field: "declarations", message };
    for (name, most) in [("max-upsert", answer.max_upsert), ("max-forget", answer.max_forget)] {
        if most == Some(0) {
            return Err(wrong(format!("has a `{name}` of 0; at least 1 is needed")));
        }
    }
    let mut left_to_host = Vec::new();
    for work in answer.left_to_host {
        left_to_host.push(match work {
            wire::HostWork::MetadataFilter => HostWork::MetadataFilter,
            wire::HostWork::AgentPartition => HostWork::AgentPartition,
            wire::HostWork::SubjectPartition => HostWork::SubjectPartition,
            wire::HostWork::NamespacePartition => HostWork::NamespacePartition,
            wire::HostWork::Other(name) => {
                let name = memhost_types::cut_message(name);
                return Err(wrong(format!(
                    "leaves `{name}` to the host, which does not know it; use a newer host"
                )));
            }
        });
    }
    let known = |exception| match exception {
        wire::Exception::AllOrNoneUpserts => Some(Exception::AllOrNoneUpserts),
        wire::Exception::ReadAfterWrite => Some(Exception::ReadAfterWrite),
        wire::Exception::ExactlyOnceLists => Some(Exception::ExactlyOnceLists),
        wire::Exception::IdempotentCaptures => Some(Exception::IdempotentCaptures),
        // This host promises nothing of the kind.
        wire::Exception::Other(_) => None,
    };
    let mut exceptions: Vec<Exception> = answer.exceptions.into_iter().filter_map(known).collect();
    left_to_host.sort_unstable();
    left_to_host.dedup();
    exceptions.sort_unstable();
    exceptions.dedup();
    Ok(Declarations {
        max_upsert: answer.max_upsert,
        max_forget: answer.max_forget,
        left_to_host,
        exceptions,
    })
}

fn permission_request(
    request: wire::PermissionRequest,
) -> Result<PermissionRequest, AdmissionError> {
    let permission = match request.permission {
        wire::Permission::Storage(bytes) => Permission::Storage(bytes),
        wire::Permission::Directory(bytes) => Permission::Directory(bytes),
        wire::Permission::Embeddings => Permission::Embeddings,
        wire::Permission::Http(http) => {
            let origin =
                http.origin.parse().map_err(|error: OriginError| AdmissionError::Description {
                    field: "permissions",
                    message: format!("requests an invalid origin: {error}"),
                })?;
            Permission::Http(HttpPermission { origin, methods: http.methods })
        }
        wire::Permission::Secret(name) => Permission::Secret(name),
        wire::Permission::Clock => Permission::Clock,
        wire::Permission::Other(name) => Permission::Other(memhost_types::cut_message(name)),
    };
    let reason = memhost_types::cut_message(request.reason);
    Ok(PermissionRequest { permission, reason, optional: request.optional })
}
