//! Admission: from a file's bytes to a component that can be instantiated. The checks that do not
//! run the component come first. Then `describe` runs in a sandbox with no grants and tight limits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cache::CacheKey;
use super::carried;
use super::compile::Compiled;
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

/// How long `describe` may take.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(1);

impl Component {
    /// Admits a component. Compiles it as the sandbox's options say, unless the cache has its
    /// compiled form. `describe` runs either way: a description that another version of this host
    /// accepted may be wrong for this version.
    ///
    /// # Errors
    /// Why the component is refused.
    pub async fn admit(
        sandbox: &Sandbox,
        bytes: impl Into<Arc<Vec<u8>>>,
        cache: Option<&CacheKey>,
    ) -> Result<Self, AdmissionError> {
        Self::admit_within(sandbox, bytes, cache, Duration::MAX).await
    }

    /// The same, where compiling ends after `patience` of computing, in whole seconds, or five
    /// times as long by the clock. It has no effect on a compiler in this process.
    ///
    /// # Errors
    /// Why the component is refused.
    pub async fn admit_within(
        sandbox: &Sandbox,
        bytes: impl Into<Arc<Vec<u8>>>,
        cache: Option<&CacheKey>,
        patience: Duration,
    ) -> Result<Self, AdmissionError> {
        Self::admitted(sandbox, bytes.into(), cache, patience, false).await
    }

    /// Admits a component of this host's own. It is not compiled where the file of this program has
    /// its code.
    ///
    /// # Errors
    /// Why the component is refused.
    pub async fn admit_own(
        sandbox: &Sandbox,
        bytes: impl Into<Arc<Vec<u8>>>,
        cache: Option<&CacheKey>,
    ) -> Result<Self, AdmissionError> {
        Self::admitted(sandbox, bytes.into(), cache, Duration::MAX, true).await
    }

    async fn admitted(
        sandbox: &Sandbox,
        bytes: Arc<Vec<u8>>,
        cache: Option<&CacheKey>,
        patience: Duration,
        is_trusted: bool,
    ) -> Result<Self, AdmissionError> {
        check_format(&bytes)?;
        let (worker, key, read) = (sandbox.clone(), cache.cloned(), Arc::clone(&bytes));
        let (digest, cached) =
            blocking(move || Ok(cached(&worker, &read, key.as_ref(), is_trusted))).await?;
        let size = bytes.len() as u64;
        let is_new = cached.is_none();
        let compiled = match cached {
            Some(component) => Compiled { component, bytes: None },
            None => sandbox.compile(bytes, patience, is_trusted).await?,
        };
        let Compiled { component: code, bytes: mut compiled } = compiled;
        let (worker, loaded) = (sandbox.clone(), code.clone());
        let component = Self::new(blocking(move || prepare(&worker, &loaded, digest, size)).await?);
        let description = component.describe(sandbox).await?;
        let component = component
            .with_description(description)
            .ok_or_else(|| AdmissionError::Describe("it is still running".to_owned()))?;
        if let Some(key) = cache.filter(|_| is_new).cloned() {
            let worker = sandbox.clone();
            let written = blocking(move || {
                let serialize = |error: wasmtime::Error| {
                    AdmissionError::io("keeping", "the compiled form", error)
                };
                let compiled =
                    compiled.take().map_or_else(|| code.serialize().map_err(serialize), Ok)?;
                key.write(&worker, digest, &compiled)
            });
            // Without the cache the next start takes longer, and nothing else is lost.
            if let Err(error) = written.await {
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
        let slot = slot.ok_or_else(|| {
            failed("all instances of the host are in use; try again later".to_owned())
        })?;
        let setup = InstanceSetup::without_grants(BindingLimits {
            memory_bytes: 64 << 20,
            call_cpu_ms: u64::try_from(DESCRIBE_TIMEOUT.as_millis()).unwrap_or(1_000),
            ..BindingLimits::default()
        });
        let call = async {
            let mut instance = Instance::new(sandbox, self, &setup, slot).await?;
            instance.arm(Instant::now() + DESCRIBE_TIMEOUT);
            let Instance { store, exports, .. } = &mut instance;
            match provider::Guest::of(exports) {
                Some(provider) => provider.call_describe(store).await,
                None => Err(wasmtime::Error::msg("it exports no `provider`")),
            }
        };
        let answer = match tokio::time::timeout(DESCRIBE_TIMEOUT, call).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                return Err(failed(memhost_types::cut_message(error.root_cause().to_string())));
            }
            Err(_) => {
                return Err(failed(format!(
                    "it took longer than {} s",
                    DESCRIBE_TIMEOUT.as_secs()
                )));
            }
        };
        check_description(answer, &self.inspection().interfaces)
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AdmissionError> + Send + 'static,
) -> Result<T, AdmissionError> {
    let done = memhost_executor::spawn_blocking(work).await;
    done.map_err(|error| AdmissionError::io("admitting", "the component", error))?
}

/// The digest of a component, and its compiled form if the cache has it, or this program the one
/// of its own component.
fn cached(
    sandbox: &Sandbox,
    bytes: &[u8],
    cache: Option<&CacheKey>,
    is_own: bool,
) -> (Digest, Option<wasmtime::component::Component>) {
    let digest = Digest::of(bytes);
    let cached = cache.and_then(|cache| {
        cache.read(sandbox, digest).unwrap_or_else(|error| {
            tracing::warn!(%error, "the compiled component is not used");
            None
        })
    });
    let cached = cached.or_else(|| if is_own { carried::load(sandbox, digest) } else { None });
    if cached.is_some() {
        sandbox.counters().loaded();
    }
    (digest, cached)
}

fn prepare(
    sandbox: &Sandbox,
    component: &wasmtime::component::Component,
    digest: Digest,
    bytes: u64,
) -> Result<Prepared, AdmissionError> {
    let engine = &sandbox.0.engine;
    let ty = component.component_type();
    let exports: Vec<String> = ty.exports(engine).map(|(name, _)| name.to_owned()).collect();
    let imports: Vec<String> = ty.imports(engine).map(|(name, _)| name.to_owned()).collect();
    let contract_version = check_contract(&exports)?;
    check_resources(sandbox, component)?;
    let unlinkable = |error: wasmtime::Error| AdmissionError::Unlinkable(format!("{error:#}"));
    let pre = sandbox.0.linker.instantiate_pre(component).map_err(unlinkable)?;
    let interfaces: Vec<OptionalInterface> = OptionalInterface::ALL
        .iter()
        .copied()
        .filter(|interface| {
            let prefix = format!("{PACKAGE}/{}@", interface.name());
            exports.iter().any(|export| export.starts_with(&prefix))
        })
        .collect();
    let indices = ExportIndices::find(&pre, &interfaces).map_err(unlinkable)?;
    let description = undescribed()?;
    let inspection =
        Inspection { digest, bytes, contract_version, interfaces, exports, imports, description };
    Ok(Prepared { pre, exports: indices, inspection })
}
