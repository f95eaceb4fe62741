//! Direct calls of a binding's provider, for tests of its behaviour.

use crate::Control;
use async_recursion::async_recursion as boxed;
use memhost_registry::plugins::Build as _;
use memhost_registry::versions::Serving;
use memhost_sandbox::{Component, Instances, Sandbox};
use memhost_tenancy::ServiceError;
use memhost_types::{BindingKey, CompanyId, Digest};

/// Instances of the build that serves a binding, beside those that serve it. They have the
/// binding's configuration, grants and limits, and its storage. Calls of them leave no operation
/// records.
pub struct Workbench(Serving);

impl Workbench {
    /// The instances. The first call makes one.
    pub fn instances(&self) -> &Instances {
        &self.0.instances
    }
}

impl Control {
    /// New instances for a binding, beside those that serve it.
    ///
    /// # Errors
    /// Where there is no such binding or no build may serve it.
    #[boxed]
    pub async fn workbench(
        &self,
        company: &CompanyId,
        key: &BindingKey,
    ) -> Result<Workbench, ServiceError> {
        let binding = self.bindings.get(company, key)?;
        let plugin = self.serving.get(&binding).await?.plugin.clone();
        let _lock = self.serving.lock(binding.id).await?;
        Ok(Workbench(self.serving.serve(&binding, plugin).await?))
    }

    /// An admitted build, without a binding.
    pub fn component(&self, digest: Digest) -> Option<Component> {
        let found = self.plugins.list().into_iter().find(|plugin| plugin.digest() == digest);
        found.map(|plugin| plugin.component)
    }

    /// The sandbox of the guests.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }
}
