//! Copies of admitted components, by digest, in the data directory. A copy goes on serving bindings
//! after its file was removed from the plugins directory.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::plugins::error::PluginError;
use crate::plugins::files;
use memhost_types::Digest;

/// The copies.
#[derive(Debug, Clone)]
pub(crate) struct KeptComponents(PathBuf);

impl KeptComponents {
    /// In a directory that is made with mode 0700 where it is missing.
    pub(crate) fn open(directory: PathBuf) -> Result<Self, PluginError> {
        memhost_files::durable::create_directory(&directory, 0o700)
            .map_err(|error| PluginError::io("making", &directory, &error))?;
        Ok(Self(directory))
    }

    /// Where the copy of a build is.
    pub(crate) fn path(&self, digest: Digest) -> PathBuf {
        self.0.join(format!("{}.wasm", digest.to_string().replace(':', "-")))
    }

    /// Keeps a copy, if there is none.
    pub(crate) fn keep(&self, digest: Digest, bytes: &[u8]) -> Result<(), PluginError> {
        let path = self.path(digest);
        if path.exists() {
            return Ok(());
        }
        memhost_files::durable::write(&path, bytes, 0o600)
            .map_err(|error| PluginError::io("writing", &path, &error))
    }

    /// The copy, if it is there and matches its digest.
    pub(crate) fn read(&self, digest: Digest) -> Result<Vec<u8>, PluginError> {
        let path = self.path(digest);
        let read = files::read(&path)?;
        let bytes =
            read.ok_or_else(|| PluginError::BeingWritten { path: path.display().to_string() })?;
        if Digest::of(&bytes) != digest {
            return Err(PluginError::Changed { digest });
        }
        Ok(bytes)
    }

    /// Removes every copy that is not needed.
    pub(crate) fn keep_only(&self, needed: &HashSet<Digest>) -> Result<(), PluginError> {
        let needed: HashSet<PathBuf> = needed.iter().map(|digest| self.path(*digest)).collect();
        for (path, _) in files::list(&self.0)? {
            if !needed.contains(&path) {
                std::fs::remove_file(&path)
                    .map_err(|error| PluginError::io("removing", &path, &error))?;
            }
        }
        Ok(())
    }
}
