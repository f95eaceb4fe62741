//! What a binding has on this host's disk: its provider's storage and directory, and which build served it last.

use std::path::PathBuf;
use std::sync::Arc;

use crate::versions::serving::ServingBindings;

use crate::error::Refusal;
use crate::versions::serving::host;
use memhost_ports::{BindingStorage, StorageSize, StorageWrite};
use memhost_sandbox::DirectoryQuota;
use memhost_store as store;
use memhost_types::{Binding, BindingId, CompanyId, Grants, ServingVersion};

impl ServingBindings {
    /// The private storage of a binding, if it may have one.
    pub(crate) async fn storage(
        &self,
        binding: &Binding,
        grants: &Grants,
    ) -> Result<Option<Arc<dyn BindingStorage>>, Refusal> {
        match grants.storage_bytes {
            0 => Ok(None),
            bytes => {
                let limit = StorageSize { bytes, keys: binding.limits.storage_keys };
                let partition = partition(&binding.company_id, binding.id);
                let storage = self.store.binding_storage(&partition, limit).await;
                storage.map(Some).map_err(|error| host(&error))
            }
        }
    }

    pub(crate) async fn quota(&self, binding: &Binding, bytes: u64) -> Result<Arc<DirectoryQuota>, Refusal> {
        let (path, files) = (self.directory(binding), binding.limits.directory_files);
        let measured = tokio::task::spawn_blocking(move || {
            std::fs::create_dir_all(&path)?;
            Ok::<_, std::io::Error>(DirectoryQuota::new(&path, bytes, files))
        });
        let quota = measured.await.map_err(|error| host(&error))?.map_err(|error| host(&error))?;
        Ok(Arc::new(quota))
    }

    /// `memory/<company>/<key>.<id's end>`: a name that a person recognizes and that no other binding ever gets.
    pub(crate) fn directory(&self, binding: &Binding) -> PathBuf {
        let id = binding.id.0.simple().to_string();
        let name = format!("{}.{}", binding.key, &id[id.len() - 12..]);
        self.memory_dir.join(binding.company_id.as_str()).join(name)
    }

    /// Removes what a deleted binding's provider has stored through the host.
    pub(crate) async fn remove_stored(&self, binding: &Binding) -> Result<(), Refusal> {
        let partition = partition(&binding.company_id, binding.id);
        self.store
            .remove_partition(&partition)
            .await
            .map_err(|error| host(&error))?
            .await
            .map_err(|error| host(&error))?;
        let path = self.directory(binding);
        let removed = tokio::task::spawn_blocking(move || match std::fs::remove_dir_all(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        });
        removed.await.map_err(|error| host(&error))?.map_err(|error| host(&error))
    }

    /// Which build served a binding last.
    pub(crate) async fn state(&self, binding: &Binding) -> Result<Option<ServingVersion>, Refusal> {
        let partition = partition(&binding.company_id, binding.id);
        let stored = self.store.partition_state(&partition).await.map_err(|error| host(&error))?;
        let state = stored.map(|bytes| store::decode("serving version", &bytes)).transpose();
        state.map_err(|error| host(&error))
    }

    /// Remembers which build serves a binding, in one step with what a migration wrote.
    pub(crate) async fn write_state(
        &self,
        binding: &Binding,
        state: &ServingVersion,
        writes: Vec<StorageWrite>,
    ) -> Result<(), Refusal> {
        let partition = partition(&binding.company_id, binding.id);
        let state = store::encode("serving version", state).map_err(|error| host(&error))?;
        let limit = StorageSize { bytes: binding.grants.storage_bytes, keys: binding.limits.storage_keys };
        let commit = self.store.write_partition_state(&partition, limit, &state, writes).await;
        commit.map_err(|error| host(&error))?.await.map_err(|error| host(&error))
    }
}

fn partition(company: &CompanyId, binding: BindingId) -> Vec<u8> {
    [company.as_str().as_bytes(), b"\0", binding.0.as_bytes()].concat()
}
