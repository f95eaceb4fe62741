//! An admitted component: what is known of it, and how an instance of it is made.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wasmtime::component::InstancePre;

use super::contract::{ExportIndices, Exports, OptionalInterface};
use super::imports::{GuestStore, State};
use memhost_types::{Digest, ProviderDescription};

/// The largest component that is admitted, in bytes.
pub const MAX_COMPONENT_BYTES: u64 = 64 << 20;

/// The facts about a component that need no binding.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// The digest of the file's bytes.
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
    /// The provider's description of itself.
    pub description: ProviderDescription,
}

/// An admitted component. Cheap to clone.
#[derive(Clone)]
pub struct Component(Arc<Prepared>);

/// A component that is compiled and linked.
pub(super) struct Prepared {
    pub(super) pre: InstancePre<State>,
    pub(super) exports: ExportIndices,
    pub(super) inspection: Inspection,
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Component").field(&self.0.inspection).finish()
    }
}

impl Component {
    pub(super) fn new(prepared: Prepared) -> Self {
        Self(Arc::new(prepared))
    }

    /// The same component with the answer of its `describe`. `None` if it was cloned before.
    pub(super) fn with_description(mut self, description: ProviderDescription) -> Option<Self> {
        Arc::get_mut(&mut self.0)?.inspection.description = description;
        Some(self)
    }

    /// The facts about it that need no binding.
    pub fn inspection(&self) -> &Inspection {
        &self.0.inspection
    }

    /// The provider's description of itself.
    pub fn description(&self) -> &ProviderDescription {
        &self.0.inspection.description
    }

    pub(super) async fn instantiate(&self, store: &mut GuestStore) -> wasmtime::Result<Exports> {
        let instance = self.0.pre.instantiate_async(&mut *store).await?;
        self.0.exports.load(store, &instance)
    }

    /// Whether it exports the interface.
    pub fn exports(&self, interface: OptionalInterface) -> bool {
        self.0.inspection.interfaces.contains(&interface)
    }
}
