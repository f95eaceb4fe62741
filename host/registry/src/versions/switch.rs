//! The switch from one build to another. No call fails or is lost. A build that exports `migration`
//! converts what is stored, in one step. A new build that fails where the one before did not is
//! rolled back.

use std::sync::Arc;

use crate::activity::NewActivity;
use crate::plugins::{Build as _, Plugin, PluginError};
use crate::versions::migration_storage::MigrationStorage;
use crate::versions::serving::{Serving, ServingBindings, UNCHOSEN, config, state_of};
use memhost_ports::{BindingStorage, StorageWrite};
use memhost_sandbox::{
    Directory, DirectoryAccess, Failure, InstanceSetup, Instances, OptionalInterface,
};
use memhost_types::{
    ActivityAction, Binding, ListRequest, OperationErrorCode, Principal, Refusal, RejectedVersion,
    Scope, ServingVersion,
};

impl ServingBindings {
    /// The caller holds the binding's lock. Calls that run end on the build on which they began.
    pub(super) async fn switch(
        &self,
        binding: &Arc<Binding>,
        present: Option<Arc<Serving>>,
        known: ServingVersion,
        plugin: Plugin,
        generation: u64,
    ) -> Result<Arc<Serving>, Refusal> {
        let next = state_of(&plugin, known.rejected_versions.clone());
        if !plugin.component.exports(OptionalInterface::Migration) {
            return self.replace(binding, present, &known, &next, plugin, generation).await;
        }
        // A migration sees no other call's writes: calls wait until it is over.
        let instances = present.as_ref().map(|present| &present.instances);
        self.retire_all(binding.id, instances).await;
        let drained = match instances {
            Some(instances) => Some(instances.drain().await),
            None => None,
        };
        match self.migrate(binding, &known, &plugin).await {
            // The stored data is unchanged: the build before can still read it.
            Ok(writes) if writes.is_empty() => {
                drop(drained);
                self.replace(binding, present, &known, &next, plugin, generation).await
            }
            Ok(writes) => {
                // Before the write: afterwards the build before must not be called any more,
                // whatever fails.
                let serving = self.serve(binding, plugin).await?;
                self.write_state(binding, &next, writes).await?;
                let serving = self.install(serving, None, generation);
                if let Some(drained) = drained {
                    drained.retire();
                }
                self.publish(binding, ActivityAction::VersionSwitched, &known, &next).await;
                Ok(serving)
            }
            Err(reason) => {
                drop(drained);
                let reason = format!("its migration from {} failed: {reason}", known.version);
                let next = reject(known.clone(), &plugin, reason);
                self.write_state(binding, &next, Vec::new()).await?;
                self.publish(binding, ActivityAction::VersionRejected, &known, &next).await;
                self.go_on(binding, present, &next).await
            }
        }
    }

    /// A build takes over. The one before is kept until the new one has given enough answers.
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
            // The new build came while the host was stopped.
            None => self.before(binding, known).await,
        };
        let serving = self.serve(binding, plugin).await?;
        self.write_state(binding, next, Vec::new()).await?;
        self.publish(binding, ActivityAction::VersionSwitched, known, next).await;
        Ok(self.install(serving, previous, generation))
    }

    /// After a build was rejected, the one before goes on. It is not marked as chosen, so that the
    /// next call considers other builds.
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
            if matches!(error, PluginError::Admitting { .. }) {
                return self.loading(binding);
            }
            let message = format!(
                "version {} of the provider `{}` served the binding `{}` and cannot be read: \
                 {error}; put its `.wasm` \
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

    /// Runs a build's migration over the binding's storage and answers what it wrote. The build
    /// must then list a record, or answer with an error of its own: one that cannot read what it
    /// wrote must not serve.
    async fn migrate(
        &self,
        binding: &Arc<Binding>,
        known: &ServingVersion,
        plugin: &Plugin,
    ) -> Result<Vec<StorageWrite>, String> {
        let grants = self.granted(binding, plugin).map_err(|refusal| refusal.error.message)?;
        let grants = Arc::new(grants);
        let storage =
            self.storage(binding, &grants).await.map_err(|refusal| refusal.error.message)?;
        let storage = storage.map(|below| Arc::new(MigrationStorage::new(below)));
        let path = self.directory(binding).filter(|path| path.is_dir());
        let directory = path
            .filter(|_| grants.directory_bytes > 0)
            .map(|path| Directory { path, access: DirectoryAccess::ReadOnly });
        let setup = InstanceSetup {
            config: config(binding).map_err(|refusal| refusal.error.message)?.into(),
            storage: storage.clone().map(|storage| storage as Arc<dyn BindingStorage>),
            directory,
            embeddings: grants
                .embeddings
                .then(|| self.embeddings.for_binding(&binding.company_id, binding.id)),
            grants: Arc::clone(&grants),
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
            filter: None,
        };
        match instances.list(&probe, None).await {
            Ok(_) => {}
            Err(failure) if failure.error.is_providers_answer() => {}
            Err(failure) => {
                return Err(format!("it could not list a record afterwards: {}", failed(failure)));
            }
        }
        Ok(match storage {
            Some(storage) => storage.take_writes().await,
            None => Vec::new(),
        })
    }

    /// The build that serves failed where the one before did not: that one serves again.
    ///
    /// # Errors
    /// Where that one cannot be set up, or the store fails.
    pub async fn roll_back(&self, bad: &Arc<Serving>, reason: String) -> Result<(), Refusal> {
        let binding = &bad.binding;
        let _lock = self.lock(binding.id).await?;
        let is_serving = self.warm(binding.id).is_some_and(|warm| Arc::ptr_eq(&warm, bad));
        let (Some(previous), true) = (bad.previous(), is_serving) else { return Ok(()) };
        let Some(known) = self.state(binding).await? else { return Ok(()) };
        let back = reject(
            state_of(&previous.plugin, known.rejected_versions.clone()),
            &bad.plugin,
            reason,
        );
        let generation = self.plugins.generation();
        let serving = self.serve(binding, previous.plugin.clone()).await?;
        self.write_state(binding, &back, Vec::new()).await?;
        self.install(serving, None, generation);
        self.publish(binding, ActivityAction::VersionRejected, &known, &back).await;
        Ok(())
    }

    async fn publish(
        &self,
        binding: &Binding,
        action: ActivityAction,
        before: &ServingVersion,
        after: &ServingVersion,
    ) {
        match after.rejected_versions.last().filter(|_| action == ActivityAction::VersionRejected) {
            Some(rejected) => tracing::warn!(
                company = %binding.company_id, binding = %binding.key, version = %rejected.version,
                reason = %rejected.reason, "a version was rejected for a binding"
            ),
            None => tracing::info!(
                company = %binding.company_id, binding = %binding.key,
                from = %before.version, to = %after.version,
                "another version serves a binding"
            ),
        }
        let entry = NewActivity::new(&Principal::Host, action, binding.key.as_str())
            .with(Some(before), Some(after));
        if let Err(error) = self.activity.record(&binding.company_id, entry).await {
            tracing::error!(%error, "a change of versions is not in the activity log");
        }
    }
}

fn reject(mut state: ServingVersion, plugin: &Plugin, reason: String) -> ServingVersion {
    let (digest, version) = (plugin.digest(), plugin.version().clone());
    state.rejected_versions.retain(|rejected| rejected.digest != digest);
    state.rejected_versions.push(RejectedVersion { digest, version, reason });
    state
}
