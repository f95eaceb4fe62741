//! A binding's provider by itself: for whoever wants to know how it behaves, call by call, and not for serving.

use crate::Service;
use crate::error::Refusal;
use crate::error::ServiceError;
use crate::versions::serving::Serving;
use async_recursion::async_recursion as boxed;
use memhost_sandbox::{Component, Instances, Sandbox};
use memhost_types::{BindingKey, CompanyId, Digest};

/// Instances of the build that serves a binding, set up as those that serve it, and beside them: they have the
/// binding's configuration, grants and limits, and what it stored. No operation is recorded of what is asked of them.
pub struct Workbench(Serving);

impl Workbench {
    /// The instances. The first call makes one.
    pub fn instances(&self) -> &Instances {
        &self.0.instances
    }
}

impl Service {
    /// New instances for a binding, beside those that serve it.
    ///
    /// # Errors
    /// Where there is no such binding or no build may serve it.
    #[boxed]
    pub async fn workbench(&self, company: &CompanyId, key: &BindingKey) -> Result<Workbench, ServiceError> {
        let binding = self.bindings.get(company, key)?;
        let host = |refusal: Refusal| ServiceError::Host(refusal.error.message);
        let serving = self.serving.get(&binding).await.map_err(host)?;
        self.serving.serve(&binding, serving.plugin.clone()).await.map(Workbench).map_err(host)
    }

    /// An admitted build, without a binding.
    pub fn component(&self, digest: Digest) -> Option<Component> {
        let found = self.plugins.list().into_iter().find(|plugin| plugin.digest() == digest);
        found.map(|plugin| plugin.component)
    }

    /// What guests run in.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }
}
