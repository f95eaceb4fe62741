//! Copies of admitted components, by digest, in the data directory: what serves a binding goes on serving when its file
//! is removed from the plugins directory.

use std::collections::HashSet;
use std::path::PathBuf;

use super::files::{self, io};
use crate::contract::Digest;
use crate::sandbox::AdmissionError;

/// The copies.
#[derive(Debug, Clone)]
pub(super) struct KeptComponents(PathBuf);

impl KeptComponents {
    /// In a directory that is made with mode 0700 where it is missing.
    pub(super) fn open(directory: PathBuf) -> Result<Self, AdmissionError> {
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .map_err(|error| io("making", &directory, &error))?;
        Ok(Self(directory))
    }

    fn path(&self, digest: Digest) -> PathBuf {
        self.0.join(format!("{}.wasm", digest.to_string().replace(':', "-")))
    }

    /// Keeps a copy, if there is none.
    pub(super) fn keep(&self, digest: Digest, bytes: &[u8]) -> Result<(), AdmissionError> {
        let path = self.path(digest);
        if path.exists() {
            return Ok(());
        }
        let temporary = path.with_extension("tmp");
        let written = std::fs::write(&temporary, bytes)
            .and_then(|()| std::fs::File::open(&temporary)?.sync_all())
            .and_then(|()| std::fs::rename(&temporary, &path));
        written.map_err(|error| {
            let _ = std::fs::remove_file(&temporary);
            io("writing", &path, &error)
        })
    }

    /// The copy, if it is there and is what its name says.
    pub(super) fn read(&self, digest: Digest) -> Result<Vec<u8>, AdmissionError> {
        let path = self.path(digest);
        let read = files::read(&path)?.ok_or_else(|| io("reading", &path, &"it is being written"))?;
        if Digest::of(&read.bytes) != digest {
            return Err(io(
                "reading",
                &path,
                &"it is not what it was; put the plugin's file into the plugins directory",
            ));
        }
        Ok(read.bytes)
    }

    /// Throws away every copy that nobody needs.
    pub(super) fn keep_only(&self, needed: &HashSet<Digest>) -> Result<(), AdmissionError> {
        let needed: HashSet<PathBuf> = needed.iter().map(|digest| self.path(*digest)).collect();
        for (path, _) in files::list(&self.0)? {
            if !needed.contains(&path) {
                std::fs::remove_file(&path).map_err(|error| io("removing", &path, &error))?;
            }
        }
        Ok(())
    }
}
