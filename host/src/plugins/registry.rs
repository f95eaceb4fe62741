//! Admitted and refused components. A file that is refused is kept out with its reason; the others serve.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use parking_lot::RwLock;
use serde::Serialize;

use super::builtin;
use crate::contract::ProviderKey;
use crate::sandbox::{AdmissionError, CacheKey, Component, MAX_COMPONENT_BYTES, Sandbox};

/// Where a provider came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "path")]
pub enum PluginSource {
    /// It is part of this binary.
    Builtin,
    /// It is a file of the plugins directory.
    File(PathBuf),
}

/// An admitted provider.
#[derive(Debug, Clone)]
pub struct Plugin {
    /// Where it came from.
    pub source: PluginSource,
    /// What serves.
    pub component: Component,
}

/// A file that was kept out.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusedPlugin {
    /// Which file.
    pub path: PathBuf,
    /// Why, and what to do about it.
    pub reason: String,
}

/// All providers of a host.
pub struct Plugins {
    admitted: RwLock<BTreeMap<ProviderKey, Plugin>>,
    refused: RwLock<Vec<RefusedPlugin>>,
}

impl Plugins {
    /// Admits the built-in provider and every `.wasm` file of `directory`, if there is one.
    ///
    /// # Errors
    /// Where the built-in provider is not admitted or the directory cannot be read. A bad file is no error.
    pub async fn load(
        sandbox: &Sandbox,
        cache: Option<&CacheKey>,
        directory: Option<&Path>,
    ) -> Result<Self, AdmissionError> {
        let plugins = Self { admitted: RwLock::default(), refused: RwLock::default() };
        let builtin = Component::admit(sandbox, builtin::LOCAL_MARKDOWN.to_vec(), cache).await?;
        plugins.insert(Plugin { source: PluginSource::Builtin, component: builtin });
        let mut files = match directory {
            Some(directory) => wasm_files(directory)?,
            None => Vec::new(),
        };
        files.sort();
        // Two at a time: admission reads and hashes, and compiles where the cache is cold.
        let mut pending = files.into_iter();
        let mut admissions = tokio::task::JoinSet::new();
        loop {
            while admissions.len() < 2
                && let Some(path) = pending.next()
            {
                let (sandbox, cache) = (sandbox.clone(), cache.cloned());
                admissions.spawn(async move {
                    let admitted = admit_file(&sandbox, cache.as_ref(), &path).await;
                    (path, admitted)
                });
            }
            match admissions.join_next().await {
                Some(Ok((path, Ok(component)))) => {
                    plugins.insert(Plugin { source: PluginSource::File(path), component });
                }
                Some(Ok((path, Err(error)))) => plugins.refuse(path, error.to_string()),
                Some(Err(error)) => tracing::error!(%error, "an admission ended early"),
                None => break,
            }
        }
        Ok(plugins)
    }

    /// The provider of this key.
    pub fn get(&self, key: &ProviderKey) -> Option<Plugin> {
        self.admitted.read().get(key).cloned()
    }

    /// All providers, by key.
    pub fn list(&self) -> Vec<Plugin> {
        self.admitted.read().values().cloned().collect()
    }

    /// The files that were kept out.
    pub fn refused(&self) -> Vec<RefusedPlugin> {
        self.refused.read().clone()
    }

    fn insert(&self, plugin: Plugin) {
        let key = plugin.component.description().provider_key.clone();
        let mut admitted = self.admitted.write();
        match (admitted.get(&key).map(|present| present.source.clone()), &plugin.source) {
            (Some(present), PluginSource::File(path)) => {
                drop(admitted);
                let other = match present {
                    PluginSource::Builtin => "the built-in provider".to_owned(),
                    PluginSource::File(path) => path.display().to_string(),
                };
                self.refuse(path.clone(), format!("its provider key `{key}` is that of {other}; remove one of them"));
            }
            _ => drop(admitted.insert(key, plugin)),
        }
    }

    fn refuse(&self, path: PathBuf, reason: String) {
        tracing::warn!(path = %path.display(), %reason, "a plugin is kept out");
        self.refused.write().push(RefusedPlugin { path, reason });
    }
}

async fn admit_file(sandbox: &Sandbox, cache: Option<&CacheKey>, path: &Path) -> Result<Component, AdmissionError> {
    let owned = path.to_owned();
    let bytes = tokio::task::spawn_blocking(move || read_bounded(&owned))
        .await
        .map_err(|error| io("reading", path, &error))??;
    Component::admit(sandbox, bytes, cache).await
}

/// Reads a file that may be any size or kind: the size is looked at first, and no more than it is read.
fn read_bounded(path: &Path) -> Result<Vec<u8>, AdmissionError> {
    use std::io::Read;
    let failed = |error: std::io::Error| io("reading", path, &error);
    let file = std::fs::File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(io("reading", path, &"it is not a file"));
    }
    if metadata.len() > MAX_COMPONENT_BYTES {
        return Err(AdmissionError::TooLarge { bytes: metadata.len(), max: MAX_COMPONENT_BYTES });
    }
    let mut bytes = Vec::new();
    file.take(MAX_COMPONENT_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

fn wasm_files(directory: &Path) -> Result<Vec<PathBuf>, AdmissionError> {
    let failed = |error: std::io::Error| io("reading the plugins directory", directory, &error);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            files.push(path);
        }
    }
    Ok(files)
}

fn io(action: &'static str, path: &Path, error: &dyn std::fmt::Display) -> AdmissionError {
    AdmissionError::Io { action, what: path.display().to_string(), message: error.to_string() }
}

impl Plugins {
    /// Admits one file on its own, for `plugin inspect`.
    ///
    /// # Errors
    /// Why it is kept out.
    pub async fn inspect(sandbox: &Sandbox, path: &Path) -> Result<Component, AdmissionError> {
        admit_file(sandbox, None, path).await
    }
}
