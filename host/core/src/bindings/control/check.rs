//! Whether a binding can be as somebody wants it.

use crate::Service;
use crate::bindings::control::schema;
use crate::error::ServiceError;
use crate::plugins::Plugin;
use memhost_sandbox::{Component, InstanceSetup, Instances};
use memhost_types::limits::MAX_JSON_BYTES;
use memhost_types::{BindingLimits, FieldError, Grants, JsonObject};

impl Service {
    /// Asks the provider, in a sandbox without grants, whether it accepts the configuration.
    pub(crate) async fn check(
        &self,
        plugin: &Plugin,
        config: &JsonObject,
        limits: &BindingLimits,
    ) -> Result<(), ServiceError> {
        check_limits(limits, self.sandbox.options().max_memory_bytes)?;
        schema::check(plugin.component.description(), config)?;
        let config = serde_json::to_string(config).unwrap_or_default();
        if config.len() > MAX_JSON_BYTES {
            let message = format!("is larger than {MAX_JSON_BYTES} bytes");
            return Err(FieldError::new("config", message).into());
        }
        self.validate_config(&plugin.component, config).await
    }

    async fn validate_config(&self, component: &Component, config: String) -> Result<(), ServiceError> {
        let setup = InstanceSetup::without_grants(BindingLimits {
            call_timeout_ms: 2_000,
            call_cpu_ms: 1_000,
            ..BindingLimits::default()
        });
        let errors = Instances::new(&self.sandbox, component, setup)
            .validate_config(config)
            .await
            .map_err(|failure| failure.error)?;
        if errors.is_empty() { Ok(()) } else { Err(ServiceError::Config { errors }) }
    }
}

pub(crate) fn check_grants(grants: &Grants) -> Result<(), FieldError> {
    const MOST: usize = 64;
    let wrong = |field: String, message: String| Err(FieldError::new(format!("grants.{field}"), message));
    for (name, count) in [("http", grants.http.len()), ("secrets", grants.secrets.len())] {
        if count > MOST {
            return wrong(name.to_owned(), format!("has {count} entries; at most {MOST} are allowed"));
        }
    }
    for (index, http) in grants.http.iter().enumerate() {
        if let Some(method) = http.methods.iter().find(|method| !is_token(method, |byte| byte.is_ascii_uppercase())) {
            let message = format!("has `{}`; give methods in capitals, such as GET", method.escape_debug());
            return wrong(format!("http.{index}.methods"), message);
        }
        if http.private_ranges.len() > MOST {
            let message = format!("has {} entries; at most {MOST} are allowed", http.private_ranges.len());
            return wrong(format!("http.{index}.privateRanges"), message);
        }
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    match grants.secrets.iter().position(|name| !is_token(name, is_name)) {
        Some(index) => {
            let message = "is no name; 1 to 64 letters, digits, `_` and `-` are allowed".to_owned();
            wrong(format!("secrets.{index}"), message)
        }
        None => Ok(()),
    }
}

fn is_token(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(allowed)
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
    range("logBytes", limits.log_bytes, 0, 1 << 20)?;
    range("storageKeys", limits.storage_keys, 1, 1_000_000_000)?;
    range("directoryFiles", limits.directory_files, 1, 10_000_000)?;
    range("callsPerSecond", u64::from(limits.calls_per_second), 0, 1_000_000)?;
    range("outgoingRequests", u64::from(limits.outgoing_requests), 0, 10_000)?;
    range("outgoingRequestsPerMinute", u64::from(limits.outgoing_requests_per_minute), 0, 1_000_000)?;
    range("outgoingConnections", u64::from(limits.outgoing_connections), 1, 256)?;
    range("outgoingBytes", limits.outgoing_bytes, 0, 256 << 20)?;
    range("incomingBytes", limits.incoming_bytes, 0, 256 << 20)?;
    range("concurrentJobs", u64::from(limits.concurrent_jobs), 1, 64)?;
    range("jobTimeoutMs", limits.job_timeout_ms, 1_000, 7 * 86_400_000)
}
