//! From one build to another: without a failed or lost call, with the stored state brought forward in one step where
//! the new build can do that, and back again by itself where the new build proves worse.

use std::sync::Arc;

use crate::bindings::NewActivity;
use crate::error::Refusal;
use crate::plugins::Plugin;
use crate::versions::migration_storage::Overlay;
use crate::versions::serving::Serving;
use crate::versions::serving::ServingBindings;
use crate::versions::serving::UNCHOSEN;
use crate::versions::serving::config;
use crate::versions::serving::effective;
use memhost_ports::{BindingStorage, StorageWrite};
use memhost_sandbox::{Directory, DirectoryAccess, Failure, InstanceSetup, Instances, OptionalInterface};
use memhost_types::{ActivityAction, Binding, ListRequest, OperationErrorCode, RejectedVersion, Scope, ServingVersion};

/// Who does what the host does by itself.
const HOST: &str = "host";

impl ServingBindings {
    /// Called by one task at a time for a binding. Calls that are under way end on the build that they began on.
    pub(crate) async fn switch(
        &self,
        binding: &Arc<Binding>,
        present: Option<Arc<Serving>>,
        known: ServingVersion,
        plugin: Plugin,
        generation: u64,
    ) -> Result<Arc<Serving>, Refusal> {
        let mut next = ServingVersion {
            digest: plugin.digest(),
            version: plugin.component.description().version.clone(),
            rejected_versions: known.rejected_versions.clone(),
        };
        if !plugin.component.exports(OptionalInterface::Migration) {
            return self.replace(binding, present, &known, &next, plugin, generation).await;
        }
        // A migration sees no other call's writes: new calls wait until it is over.
        let drained = match &present {
            Some(present) => Some(present.instances.drain().await),
            None => None,
        };
        match self.migrate(binding, &known, &plugin).await {
            // What was stored is as it was: the build before can still read it.
            Ok(writes) if writes.is_empty() => {
                drop(drained);
                self.replace(binding, present, &known, &next, plugin, generation).await
            }
            Ok(writes) => {
                self.write_state(binding, &next, writes).await?;
                self.publish(binding, ActivityAction::VersionSwitched, &known, &next).await;
                let serving = self.install(self.serve(binding, plugin).await?, None, generation);
                if let Some(present) = &present {
                    present.instances.retire();
                }
                drop(drained);
                Ok(serving)
            }
            Err(reason) => {
                drop(drained);
                let reason = format!("its migration from {} failed: {reason}", known.version);
                next = keep_from(known.clone(), &plugin, reason);
                self.write_state(binding, &next, Vec::new()).await?;
                self.publish(binding, ActivityAction::VersionRejected, &known, &next).await;
                self.go_on(binding, present, &next).await
            }
        }
    }

    /// A build takes over, and the one before stands by until it has proved itself.
    async fn replace(
        &self,
        binding: &Arc<Binding>,
        present: Option<Arc<Serving>>,
        known: &ServingVersion,
        next: &ServingVersion,
        plugin: Plugin,
        generation: u64,
    ) -> Result<Arc<Serving>, Refusal> {
        let previous = match present {
            Some(present) => Some(present),
            // The host was stopped when the new build came: what served before is set up all the same.
            None => self.before(binding, known).await,
        };
        let serving = self.serve(binding, plugin).await?;
        self.write_state(binding, next, Vec::new()).await?;
        self.publish(binding, ActivityAction::VersionSwitched, known, next).await;
        Ok(self.install(serving, previous, generation))
    }

    /// After a build was kept from a binding: what served goes on. It is not marked as chosen, so that the next call
    /// looks whether yet another build may take over.
    async fn go_on(
        &self,
        binding: &Arc<Binding>,
        present: Option<Arc<Serving>>,
        state: &ServingVersion,
    ) -> Result<Arc<Serving>, Refusal> {
        if let Some(present) = present
            && present.binding.revision >= binding.revision
        {
            return Ok(present);
        }
        let plugin = self.plugins.build(state.digest).await.map_err(|error| {
            let message = format!(
                "version {} of the provider `{}` served the binding `{}` and is not to be had: {error}; put its `.wasm` \
                 into the plugins directory",
                state.version, binding.provider_key, binding.key
            );
            Refusal::new(OperationErrorCode::ProviderMissing, message)
        })?;
        Ok(self.install(self.serve(binding, plugin).await?, None, UNCHOSEN))
    }

    async fn before(&self, binding: &Arc<Binding>, known: &ServingVersion) -> Option<Arc<Serving>> {
        let plugin = self.plugins.build(known.digest).await.ok()?;
        self.serve(binding, plugin).await.ok().map(Arc::new)
    }

    /// Runs a build's migration over the binding's storage and answers what it wrote. The build must then also list a
    /// record or say that there is none: a version that cannot read what it wrote is found out before it counts.
    async fn migrate(
        &self,
        binding: &Arc<Binding>,
        known: &ServingVersion,
        plugin: &Plugin,
    ) -> Result<Vec<StorageWrite>, String> {
        let grants = effective(&binding.grants, plugin);
        let storage = self.storage(binding, &grants).await.map_err(|refusal| refusal.error.message)?;
        let overlay = storage.map(|storage| Arc::new(Overlay::new(storage)));
        let path = self.directory(binding);
        let directory = (grants.directory_bytes > 0 && path.is_dir())
            .then_some(Directory { path, access: DirectoryAccess::ReadOnly });
        let setup = InstanceSetup {
            config: config(binding).map_err(|refusal| refusal.error.message)?.into(),
            storage: overlay.clone().map(|overlay| overlay as Arc<dyn BindingStorage>),
            directory,
            embeddings: grants.embeddings.then(|| self.embeddings.for_binding(binding.id)),
            clock: grants.clock,
            egress: None,
            limits: binding.limits,
        };
        let instances = Instances::new(&self.sandbox, &plugin.component, setup);
        let failed = |failure: Failure| failure.error.to_string();
        instances.migrate(&known.version.to_string()).await.map_err(failed)?;
        let probe = ListRequest {
            binding_key: None,
            scope: Scope::company(binding.company_id.clone()),
            cursor: None,
            limit: Some(1),
            metadata_filter: None,
        };
        match instances.list(&probe, None).await {
            Ok(_) => {}
            Err(failure) if failure.error.is_providers_answer() => {}
            Err(failure) => return Err(format!("it could not list a record afterwards: {}", failed(failure))),
        }
        Ok(overlay.map(|overlay| overlay.take_writes()).unwrap_or_default())
    }

    /// The build that serves has failed where the one before did not: that one serves again.
    pub(crate) async fn roll_back(&self, bad: &Arc<Serving>, reason: String) -> Result<(), Refusal> {
        let binding = &bad.binding;
        let turn = self.lock(binding.id);
        let _turn = turn.lock().await;
        let is_serving = self.warm(binding.id).is_some_and(|warm| Arc::ptr_eq(&warm, bad));
        let (Some(previous), true) = (bad.previous(), is_serving) else { return Ok(()) };
        let Some(known) = self.state(binding).await? else { return Ok(()) };
        let back = ServingVersion {
            digest: previous.plugin.digest(),
            version: previous.plugin.component.description().version.clone(),
            rejected_versions: known.rejected_versions.clone(),
        };
        let back = keep_from(back, &bad.plugin, reason);
        self.write_state(binding, &back, Vec::new()).await?;
        self.publish(binding, ActivityAction::VersionRejected, &known, &back).await;
        let generation = self.plugins.generation();
        let serving = self.serve(binding, previous.plugin.clone()).await?;
        self.install(serving, None, generation);
        Ok(())
    }

    async fn publish(
        &self,
        binding: &Binding,
        action: ActivityAction,
        before: &ServingVersion,
        after: &ServingVersion,
    ) {
        let rejected_versions = after.rejected_versions.last().filter(|_| action == ActivityAction::VersionRejected);
        match rejected_versions {
            Some(kept) => tracing::warn!(
                company = %binding.company_id, binding = %binding.key, version = %kept.version, reason = %kept.reason,
                "a version is kept from a binding"
            ),
            None => tracing::info!(
                company = %binding.company_id, binding = %binding.key, from = %before.version, to = %after.version,
                "another version serves a binding"
            ),
        }
        let entry = NewActivity::new(HOST, action, binding.key.as_str()).with(Some(before), Some(after));
        if let Err(error) = self.bindings.record(&binding.company_id, entry).await {
            tracing::error!(%error, "a change of versions is not in the activity log");
        }
    }
}

fn keep_from(mut state: ServingVersion, plugin: &Plugin, reason: String) -> ServingVersion {
    let version = plugin.component.description().version.clone();
    state.rejected_versions.retain(|kept| kept.digest != plugin.digest());
    state.rejected_versions.push(RejectedVersion { digest: plugin.digest(), version, reason });
    state
}
