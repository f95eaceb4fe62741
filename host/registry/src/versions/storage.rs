//! The storage and the directory of a binding's provider, and the row that says which build served
//! the binding last.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::plugins::{Build as _, Plugin};
use crate::versions::serving::{ServingBindings, memory_dir};
use memhost_files::Directory;
use memhost_ports::{BindingStorage, StorageSize, StorageWrite};
use memhost_sandbox::DirectoryQuota;
use memhost_store as store;
use memhost_types::{
    Binding, CompanyId, Grants, OperationErrorCode, Permission, PermissionRequest, Refusal,
    ServingVersion,
};

impl ServingBindings {
    /// The private storage of a binding, if it may have one.
    pub(super) async fn storage(
        &self,
        binding: &Binding,
        grants: &Grants,
    ) -> Result<Option<Arc<dyn BindingStorage>>, Refusal> {
        if grants.storage_bytes == 0 {
            return Ok(None);
        }
        let limit = StorageSize { bytes: grants.storage_bytes, keys: binding.limits.storage_keys };
        Ok(Some(self.store.binding_storage(&partition(binding), limit).await?))
    }

    /// What a build has at a binding. Where no directory is seen by every host, a provider has
    /// none.
    ///
    /// # Errors
    /// Where it cannot do without.
    pub(super) fn granted(&self, binding: &Binding, build: &Plugin) -> Result<Grants, Refusal> {
        let grants = build.granted(binding);
        if self.memory_dir.is_some() || grants.directory_bytes == 0 {
            return Ok(grants);
        }
        let needs = |request: &PermissionRequest| {
            !request.optional && matches!(request.permission, Permission::Directory(_))
        };
        match build.requests(&binding.config).iter().any(needs) {
            true => Err(no_directory()),
            false => Ok(Grants { directory_bytes: 0, ..grants }),
        }
    }

    pub(super) async fn quota(
        &self,
        binding: &Binding,
        bytes: u64,
    ) -> Result<Arc<DirectoryQuota>, Refusal> {
        let Some(path) = self.directory(binding) else { return Err(no_directory()) };
        let files = binding.limits.directory_files;
        let made = memhost_executor::spawn_blocking(move || {
            memhost_files::durable::create_directory(&path, 0o700)?;
            memhost_files::private::tighten(&path)?;
            Ok::<_, io::Error>(DirectoryQuota::new(&path, bytes, files))
        });
        Ok(Arc::new(made.await.map_err(Refusal::host)?.map_err(Refusal::host)?))
    }

    /// `memory/<company>/<key>.<end of the id>`: recognizable, and never the directory of another
    /// binding.
    pub(super) fn directory(&self, binding: &Binding) -> Option<PathBuf> {
        let id = binding.id.0.simple().to_string();
        let name = format!("{}.{}", binding.key, &id[id.len() - 12..]);
        Some(self.memory_dir.as_ref()?.join(binding.company_id.as_str()).join(name))
    }

    /// Whether a binding's provider has stored nothing through the host. A provider without
    /// storage, files and requests of its own can keep nothing.
    ///
    /// # Errors
    /// Where the storage or the directory cannot be read.
    pub async fn stored_nothing(&self, binding: &Binding) -> Result<bool, Refusal> {
        let any = StorageSize { bytes: u64::MAX, keys: u64::MAX };
        if self.store.binding_storage(&partition(binding), any).await?.used().keys > 0 {
            return Ok(false);
        }
        let Some(path) = self.directory(binding) else { return Ok(true) };
        let is_empty = memhost_executor::spawn_blocking(move || match std::fs::read_dir(path) {
            Ok(mut entries) => Ok(entries.next().is_none()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        });
        is_empty.await.map_err(Refusal::host)?.map_err(Refusal::host)
    }

    /// Removes what a deleted binding's provider has stored through the host.
    ///
    /// # Errors
    /// Where it cannot be removed.
    pub async fn remove_stored(&self, binding: &Binding) -> Result<(), Refusal> {
        self.store.remove_partition(&partition(binding)).await?.await?;
        match self.directory(binding) {
            Some(path) => remove_tree(path).await.map_err(Refusal::host),
            None => Ok(()),
        }
    }

    /// The build that served a binding last, and those that were rejected.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub async fn state(&self, binding: &Binding) -> Result<Option<ServingVersion>, Refusal> {
        let stored = self.store.partition_state(&partition(binding)).await?;
        Ok(stored.map(|bytes| store::decode("serving version", &bytes)).transpose()?)
    }

    /// Remembers which build serves a binding, in one step with what a migration wrote.
    pub(super) async fn write_state(
        &self,
        binding: &Binding,
        state: &ServingVersion,
        writes: Vec<StorageWrite>,
    ) -> Result<(), Refusal> {
        let state = store::encode("serving version", state)?;
        let limit =
            StorageSize { bytes: binding.grants.storage_bytes, keys: binding.limits.storage_keys };
        Ok(self
            .store
            .write_partition_state(&partition(binding), limit, &state, writes)
            .await?
            .await?)
    }
}

/// A provider keeps files, and no directory is seen by every host.
fn no_directory() -> Refusal {
    Refusal::new(
        OperationErrorCode::Unsupported,
        "the provider keeps files, and this host is one of several: set `shared_dir` to a \
         directory of a file system that all of them share, or use another provider",
    )
}

/// Removes the directory of a company's providers, with everything in it.
///
/// # Errors
/// Where it cannot be removed.
pub async fn remove_company_directory(data_dir: &Path, company: &CompanyId) -> io::Result<()> {
    remove_tree(memory_dir(data_dir).join(company.as_str())).await
}

/// Removes a directory below one of the host's own, however deep a provider made it, and follows no
/// link in it.
async fn remove_tree(path: PathBuf) -> io::Result<()> {
    let removed = memhost_executor::spawn_blocking(move || {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
        match Directory::open(parent) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?.remove_all(name)?,
        }
        // What was removed must not come back after a power failure.
        memhost_files::durable::sync_directory(parent)
    });
    removed.await.map_err(io::Error::other)?
}

/// The partition of a binding.
pub fn partition(binding: &Binding) -> Vec<u8> {
    store::company_key(&binding.company_id, binding.id.0.as_bytes())
}
