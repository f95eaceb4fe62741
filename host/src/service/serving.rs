//! Bindings at work: the instances that serve each binding, made at its first operation.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;

use super::error::Refusal;
use crate::contract::{Binding, BindingId, CompanyId, OperationErrorCode};
use crate::plugins::Plugins;
use crate::sandbox::{InstanceSetup, Instances, Sandbox};
use crate::store::Store;

/// One binding with its instances.
pub(super) struct Serving {
    pub(super) binding: Arc<Binding>,
    pub(super) instances: Instances,
}

/// The bindings that have served since the host started.
pub(super) struct ServingBindings {
    sandbox: Sandbox,
    plugins: Arc<Plugins>,
    store: Arc<dyn Store>,
    memory_dir: PathBuf,
    warm: RwLock<HashMap<BindingId, Arc<Serving>>>,
}

impl ServingBindings {
    pub(super) fn new(sandbox: Sandbox, plugins: Arc<Plugins>, store: Arc<dyn Store>, data_dir: &Path) -> Self {
        Self { sandbox, plugins, store, memory_dir: data_dir.join("memory"), warm: RwLock::default() }
    }

    pub(super) fn get(&self, binding: &Arc<Binding>) -> Result<Arc<Serving>, Refusal> {
        if let Some(serving) = self.warm.read().get(&binding.id)
            && serving.binding.revision == binding.revision
        {
            return Ok(Arc::clone(serving));
        }
        let serving = Arc::new(self.serve(binding)?);
        let mut warm = self.warm.write();
        // Of two that were made at the same time one must win: instances of both would not see each other's limits.
        match warm.get(&binding.id) {
            Some(present) if present.binding.revision >= binding.revision => Ok(Arc::clone(present)),
            _ => {
                warm.insert(binding.id, Arc::clone(&serving));
                Ok(serving)
            }
        }
    }

    fn serve(&self, binding: &Arc<Binding>) -> Result<Serving, Refusal> {
        let plugin = self.plugins.get(&binding.provider_key).ok_or_else(|| {
            Refusal::new(
                OperationErrorCode::ProviderMissing,
                format!(
                    "the provider `{}` of the binding `{}` is not loaded; put its `.wasm` into the plugins directory",
                    binding.provider_key, binding.key
                ),
            )
        })?;
        let host = |message: String| Refusal::new(OperationErrorCode::Host, message);
        let storage = match binding.grants.storage_bytes {
            0 => None,
            limit => {
                let partition = partition(&binding.company_id, binding.id);
                Some(self.store.binding_storage(&partition, limit).map_err(|error| host(error.to_string()))?)
            }
        };
        let directory = match binding.grants.directory_bytes {
            0 => None,
            _ => Some(self.directory(binding).map_err(|error| host(error.to_string()))?),
        };
        let config = serde_json::to_string(&binding.config).map_err(|error| host(error.to_string()))?;
        let setup = InstanceSetup {
            config: config.into(),
            storage,
            directory,
            embeddings: binding.grants.embeddings,
            limits: binding.limits,
        };
        Ok(Serving { binding: Arc::clone(binding), instances: Instances::new(&self.sandbox, &plugin.component, setup) })
    }

    /// `memory/<company>/<key>.<id's end>`: a name that a person recognizes and that no other binding ever gets.
    fn directory(&self, binding: &Binding) -> std::io::Result<PathBuf> {
        let id = binding.id.0.simple().to_string();
        let name = format!("{}.{}", binding.key, &id[id.len() - 12..]);
        let directory = self.memory_dir.join(binding.company_id.as_str()).join(name);
        std::fs::create_dir_all(&directory)?;
        Ok(directory)
    }
}

fn partition(company: &CompanyId, binding: BindingId) -> Vec<u8> {
    [company.as_str().as_bytes(), b"\0", binding.0.as_bytes()].concat()
}
