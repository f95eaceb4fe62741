//! From a file's bytes to a provider that can be instantiated: admission. Everything that can be told without running
//! the component is told first; then `describe` runs in a sandbox with no grants and tight limits.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wasmtime::component::InstancePre;

use super::cache::CacheKey;
use super::engine::Sandbox;
use super::error::AdmissionError;
use super::imports::State;
use super::instance::{Instance, InstanceSetup};
use memhost_types::{BindingLimits, Digest, ProviderDescription};

mod description;
mod exports;
mod format;

use self::description::{check_description, undescribed};
pub(super) use self::exports::Exports;
use self::exports::Indices;
use self::format::{check_contract, check_format, check_resources};

/// The largest component that is looked at, in bytes.
pub const MAX_COMPONENT_BYTES: u64 = 64 << 20;

/// The package whose interfaces make the contract.
const PACKAGE: &str = "paperclip:memory";
/// How long `describe` may take.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(1);

/// The optional interfaces of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the contract's names; `wit/optional.wit` says what each is")]
pub enum OptionalInterface {
    Correction,
    Profile,
    Extraction,
    Explain,
    Browse,
    Review,
    Transfer,
    Migration,
}

impl OptionalInterface {
    const ALL: [(&'static str, Self); 8] = [
        ("correction", Self::Correction),
        ("profile", Self::Profile),
        ("extraction", Self::Extraction),
        ("explain", Self::Explain),
        ("browse", Self::Browse),
        ("review", Self::Review),
        ("transfer", Self::Transfer),
        ("migration", Self::Migration),
    ];
}

/// What is known of a component without a binding.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// Of the file's bytes.
    pub digest: Digest,
    /// The file's size in bytes.
    pub bytes: u64,
    /// The contract version that it was built for.
    pub contract_version: String,
    /// Which optional interfaces it exports.
    pub interfaces: Vec<OptionalInterface>,
    /// Everything that it exports, by full name.
    pub exports: Vec<String>,
    /// Everything that it imports, by full name.
    pub imports: Vec<String>,
    /// What it says of itself.
    pub description: ProviderDescription,
}

/// An admitted component. Cheap to clone.
#[derive(Clone)]
pub struct Component(Arc<Inner>);

struct Inner {
    pre: InstancePre<State>,
    indices: Indices,
    inspection: Inspection,
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Component").field(&self.0.inspection).finish()
    }
}

impl Component {
    /// Admits a component, compiling it off the executor unless the cache has its compiled form. It is asked what it is
    /// either way: what another version of this host took for a description need not be one to this version.
    ///
    /// # Errors
    /// Why the component is kept out.
    pub async fn admit(sandbox: &Sandbox, bytes: Vec<u8>, cache: Option<&CacheKey>) -> Result<Self, AdmissionError> {
        let size = bytes.len() as u64;
        check_format(&bytes)?;
        let (sandbox, cache) = (sandbox.clone(), cache.cloned());
        let worker = sandbox.clone();
        let prepared = tokio::task::spawn_blocking(move || prepare(&worker, &bytes, size, cache.as_ref())).await;
        let (inner, cache) = prepared.map_err(|error| AdmissionError::Io {
            action: "compiling",
            what: "the component".to_owned(),
            message: error.to_string(),
        })??;
        let component = Self(Arc::new(inner));
        let description = component.describe(&sandbox).await?;
        let mut inner = match Arc::try_unwrap(component.0) {
            Ok(inner) => inner,
            Err(_) => return Err(AdmissionError::Describe("it is still at work".to_owned())),
        };
        inner.inspection.description = description;
        if let Some(pending) = cache {
            // A cache that cannot be written costs time at the next start and nothing else.
            if let Err(error) = pending.key.write(&sandbox, inner.inspection.digest, &pending.compiled) {
                tracing::warn!(%error, "the compiled component is not cached");
            }
        }
        Ok(Self(Arc::new(inner)))
    }

    /// What is known of it.
    pub fn inspection(&self) -> &Inspection {
        &self.0.inspection
    }

    /// What it says of itself.
    pub fn description(&self) -> &ProviderDescription {
        &self.0.inspection.description
    }

    pub(super) async fn instantiate(&self, store: &mut wasmtime::Store<State>) -> wasmtime::Result<Exports> {
        let instance = self.0.pre.instantiate_async(&mut *store).await?;
        self.0.indices.load(store, &instance)
    }

    /// Whether it exports the interface.
    pub fn exports(&self, interface: OptionalInterface) -> bool {
        self.0.inspection.interfaces.contains(&interface)
    }

    /// Asks it anew what it is, on a fresh instance without any grant, within a second.
    ///
    /// # Errors
    /// As at admission: it does not answer, or not what the contract allows.
    pub async fn describe(&self, sandbox: &Sandbox) -> Result<ProviderDescription, AdmissionError> {
        let describe = |message: String| AdmissionError::Describe(message);
        let slot =
            sandbox.slot().ok_or_else(|| describe("all instances of the host are at work; try again".to_owned()))?;
        let setup = InstanceSetup::without_grants(BindingLimits {
            memory_bytes: 64 << 20,
            call_cpu_ms: u64::try_from(DESCRIBE_TIMEOUT.as_millis()).unwrap_or(1_000),
            ..BindingLimits::default()
        });
        let call = async {
            let mut instance = Instance::new(sandbox, self, &setup, slot).await?;
            instance.arm(&setup.limits);
            let Instance { store, exports, .. } = &mut instance;
            exports.provider.paperclip_memory_provider().call_describe(store).await
        };
        let answer = match tokio::time::timeout(DESCRIBE_TIMEOUT, call).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(describe(memhost_types::cut_message(error.root_cause().to_string()))),
            Err(_) => return Err(describe(format!("it took longer than {} s", DESCRIBE_TIMEOUT.as_secs()))),
        };
        check_description(answer, &self.0.inspection.interfaces)
    }
}

/// wasmtime has one type for a component that is damaged and one that is too large for the pool.
fn unreadable(error: &wasmtime::Error) -> AdmissionError {
    let message = format!("{:#}", error.root_cause());
    match message.contains("exceeds") {
        true => AdmissionError::Unlinkable(message),
        false => AdmissionError::Malformed(message),
    }
}

/// The compiled form on its way into the cache, once its component is admitted.
struct PendingCache {
    key: CacheKey,
    compiled: Vec<u8>,
}

fn prepare(
    sandbox: &Sandbox,
    bytes: &[u8],
    size: u64,
    cache: Option<&CacheKey>,
) -> Result<(Inner, Option<PendingCache>), AdmissionError> {
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
            sandbox.0.counters.loaded();
            component
        }
        None => {
            let started = Instant::now();
            let component =
                wasmtime::component::Component::from_binary(engine, bytes).map_err(|error| unreadable(&error))?;
            sandbox.0.counters.compiled(started.elapsed());
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
        .filter(|(name, _)| exports.iter().any(|export| export.starts_with(&format!("{PACKAGE}/{name}@"))))
        .map(|(_, interface)| *interface)
        .collect();
    let indices = Indices::find(&pre, &interfaces).map_err(unlinkable)?;
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
    let inner = Inner { pre, indices, inspection };
    Ok((inner, pending))
}
