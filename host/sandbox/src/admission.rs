//! Admission: from a file's bytes to a component that can be instantiated. The checks that do not run the component come
//! first. Then `describe` runs in a sandbox with no grants and tight limits.

use std::time::{Duration, Instant};

use super::cache::CacheKey;
use super::component::{Component, Inspection, Prepared};
use super::contract::{ExportIndices, Exported, OptionalInterface, PACKAGE, provider};
use super::engine::Sandbox;
use super::error::AdmissionError;
use super::instance::{Instance, InstanceSetup};
use memhost_types::{BindingLimits, Digest, ProviderDescription};

mod description;
mod format;

use self::description::{check_description, undescribed};
use self::format::{check_contract, check_format, check_resources};

/// The largest component that is admitted, in bytes.
pub const MAX_COMPONENT_BYTES: u64 = 64 << 20;

/// How long `describe` may take.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(1);

impl Component {
    /// Admits a component. Compiles it off the executor, unless the cache has its compiled form. `describe` runs either
    /// way: a description that another version of this host accepted may be wrong for this version.
    ///
    /// # Errors
    /// Why the component is refused.
    pub async fn admit(sandbox: &Sandbox, bytes: Vec<u8>, cache: Option<&CacheKey>) -> Result<Self, AdmissionError> {
        let size = bytes.len() as u64;
        check_format(&bytes)?;
        let (sandbox, cache) = (sandbox.clone(), cache.cloned());
        let worker = sandbox.clone();
        let prepared = tokio::task::spawn_blocking(move || prepare(&worker, &bytes, size, cache.as_ref())).await;
        let (prepared, cache) = prepared.map_err(|error| AdmissionError::io("compiling", "the component", error))??;
        let component = Self::new(prepared);
        let description = component.describe(&sandbox).await?;
        let component = component
            .with_description(description)
            .ok_or_else(|| AdmissionError::Describe("it is still running".to_owned()))?;
        if let Some(pending) = cache {
            // Without the cache the next start takes longer, and nothing else is lost.
            if let Err(error) = pending.key.write(&sandbox, component.inspection().digest, &pending.compiled) {
                tracing::warn!(%error, "the compiled component is not cached");
            }
        }
        Ok(component)
    }

    /// Calls `describe` again, on a fresh instance without any grant, within a second.
    ///
    /// # Errors
    /// As at admission: it does not answer, or its answer breaks the contract.
    pub async fn describe(&self, sandbox: &Sandbox) -> Result<ProviderDescription, AdmissionError> {
        let failed = |message: String| AdmissionError::Describe(message);
        let slot = sandbox.0.pool.slot();
        let slot = slot.ok_or_else(|| failed("all instances of the host are in use; try again later".to_owned()))?;
        let setup = InstanceSetup::without_grants(BindingLimits {
            memory_bytes: 64 << 20,
            call_cpu_ms: u64::try_from(DESCRIBE_TIMEOUT.as_millis()).unwrap_or(1_000),
            ..BindingLimits::default()
        });
        let call = async {
            let mut instance = Instance::new(sandbox, self, &setup, slot).await?;
            instance.arm();
            let Instance { store, exports, .. } = &mut instance;
            match provider::Guest::of(exports) {
                Some(provider) => provider.call_describe(store).await,
                None => Err(wasmtime::Error::msg("it exports no `provider`")),
            }
        };
        let answer = match tokio::time::timeout(DESCRIBE_TIMEOUT, call).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(failed(memhost_types::cut_message(error.root_cause().to_string()))),
            Err(_) => return Err(failed(format!("it took longer than {} s", DESCRIBE_TIMEOUT.as_secs()))),
        };
        check_description(answer, &self.inspection().interfaces)
    }
}

/// wasmtime has one error type for a damaged component and for one that is too large for the pool.
fn unreadable(error: &wasmtime::Error) -> AdmissionError {
    let message = format!("{:#}", error.root_cause());
    match message.contains("exceeds") {
        true => AdmissionError::Unlinkable(message),
        false => AdmissionError::Malformed(message),
    }
}

/// A compiled form that goes into the cache once its component is admitted.
struct PendingCache {
    key: CacheKey,
    compiled: Vec<u8>,
}

fn prepare(
    sandbox: &Sandbox,
    bytes: &[u8],
    size: u64,
    cache: Option<&CacheKey>,
) -> Result<(Prepared, Option<PendingCache>), AdmissionError> {
    let engine = &sandbox.0.engine;
    let digest = Digest::of(bytes);
    let cached = cache.and_then(|cache| {
        cache.read(sandbox, digest).unwrap_or_else(|error| {
            tracing::warn!(%error, "the compiled component is not used");
            None
        })
    });
    let is_new = cached.is_none();
    let component = match cached {
        Some(component) => {
            sandbox.counters().loaded();
            component
        }
        None => {
            let started = Instant::now();
            let component =
                wasmtime::component::Component::from_binary(engine, bytes).map_err(|error| unreadable(&error))?;
            sandbox.counters().compiled(started.elapsed());
            component
        }
    };
    let ty = component.component_type();
    let exports: Vec<String> = ty.exports(engine).map(|(name, _)| name.to_owned()).collect();
    let imports: Vec<String> = ty.imports(engine).map(|(name, _)| name.to_owned()).collect();
    let contract_version = check_contract(&exports)?;
    check_resources(sandbox, &component)?;
    let unlinkable = |error: wasmtime::Error| AdmissionError::Unlinkable(format!("{error:#}"));
    let pre = sandbox.0.linker.instantiate_pre(&component).map_err(unlinkable)?;
    let interfaces: Vec<OptionalInterface> = OptionalInterface::ALL
        .iter()
        .copied()
        .filter(|interface| {
            let prefix = format!("{PACKAGE}/{}@", interface.name());
            exports.iter().any(|export| export.starts_with(&prefix))
        })
        .collect();
    let indices = ExportIndices::find(&pre, &interfaces).map_err(unlinkable)?;
    let pending = match cache.filter(|_| is_new) {
        Some(key) => match component.serialize() {
            Ok(compiled) => Some(PendingCache { key: key.clone(), compiled }),
            Err(error) => {
                tracing::warn!(%error, "the compiled component is not cached");
                None
            }
        },
        None => None,
    };
    let description = undescribed()?;
    let inspection = Inspection { digest, bytes: size, contract_version, interfaces, exports, imports, description };
    Ok((Prepared { pre, exports: indices, inspection }, pending))
}
