//! The host's own secret: one key in a file that only the host's user may read. Every other key is
//! derived from it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ed25519_dalek::SigningKey;

use crate::error::OpenError;
use memhost_types::CursorKey;

const FILE: &str = "host.key";
/// The key file of a directory of compiled components that several hosts share.
const SHARED_FILE: &str = "compiled.key";

/// A key could not be read or made.
#[derive(Debug, thiserror::Error)]
#[error("{action} {path} failed: {message}")]
pub(crate) struct KeyError {
    action: &'static str,
    path: PathBuf,
    message: String,
}

impl From<KeyError> for OpenError {
    fn from(KeyError { action, path, message }: KeyError) -> Self {
        Self::Directory { action, path, message }
    }
}

/// Keys for each purpose.
pub(crate) struct Keys([u8; 32]);

impl Keys {
    /// Reads the key of a data directory, or makes one. With `file`, the key is there.
    pub(crate) fn open(data_dir: &Path, file: Option<&Path>) -> Result<Self, OpenError> {
        match file {
            Some(file) => Self::read_or_make(file)
                .map_err(|KeyError { path, message, .. }| OpenError::HostKey { path, message }),
            None => Ok(Self::read_or_make(&data_dir.join(FILE))?),
        }
    }

    /// The same for a directory of compiled components that several hosts of one user share.
    pub(crate) fn of_shared_cache(directory: &Path) -> Result<Self, KeyError> {
        let failed = |message| KeyError { action: "trusting", path: directory.to_owned(), message };
        let found = fs::metadata(directory).map_err(|error| failed(error.to_string()))?;
        // Components from there run as this user, so nobody else may write there.
        if found.uid() != rustix::process::geteuid().as_raw() || found.mode() & 0o022 != 0 {
            let message =
                "it belongs to another user, or others can write to it; do `chmod 700` on it";
            return Err(failed(message.to_owned()));
        }
        Self::read_or_make(&directory.join(SHARED_FILE))
    }

    fn read_or_make(path: &Path) -> Result<Self, KeyError> {
        let failed = |action, error: &dyn std::fmt::Display| KeyError {
            action,
            path: path.to_owned(),
            message: error.to_string(),
        };
        let read = || match fs::read(path) {
            Ok(bytes) => bytes
                .try_into()
                .map(Some)
                .map_err(|_| failed("reading", &"it is not 32 bytes long")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("reading", &error)),
        };
        if let Some(key) = read()? {
            return Ok(Self(key));
        }
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| failed("making a random key for", &error))?;
        // Where two processes make one at the same time, the first one counts.
        match memhost_files::durable::write_new(path, &key, 0o600) {
            Ok(()) => Ok(Self(key)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                read()?.map(Self).ok_or_else(|| failed("reading", &"it is gone again"))
            }
            Err(error) => Err(failed("writing", &error)),
        }
    }

    pub(crate) fn cursors(&self) -> CursorKey {
        CursorKey::new(self.derive("memhost 2026-11 cursors"))
    }

    pub(crate) fn compiled_cache(&self) -> [u8; 32] {
        self.derive("memhost 2026-11 compiled components")
    }

    /// The key of the digests that identify requests with an idempotency key.
    pub(crate) fn digests(&self) -> [u8; 32] {
        self.derive("memhost 2026-11 requests")
    }

    /// The key that signs tombstones.
    pub(crate) fn signing(&self) -> SigningKey {
        SigningKey::from_bytes(&self.derive("memhost 2026-11 tombstones"))
    }

    /// The key that seals what sessions have.
    pub(crate) fn sessions(&self) -> [u8; 32] {
        self.derive("memhost 2026-11 sessions")
    }

    /// The id of the data directory: the same as long as it has this key, so a restored backup has
    /// it, too.
    pub(crate) fn store_id(&self) -> uuid::Uuid {
        let bytes = self.derive("memhost 2026-11 store id");
        let (id, _) = bytes.split_first_chunk::<16>().unwrap_or((&[0; 16], &[]));
        uuid::Builder::from_random_bytes(*id).into_uuid()
    }

    /// The key with which hosts on one database know each other.
    pub(crate) fn peers(&self) -> [u8; 32] {
        self.derive("memhost 2026-11 peers")
    }

    /// A value that tells hosts whether they have the same key, and nothing else.
    pub(crate) fn check(&self) -> String {
        blake3::Hash::from_bytes(self.derive("memhost 2026-11 check")).to_hex().to_string()
    }

    fn derive(&self, purpose: &str) -> [u8; 32] {
        blake3::derive_key(purpose, &self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn hosts_that_start_together_have_one_key() {
        for _ in 0..50 {
            let directory = tempfile::tempdir().unwrap();
            let start = Barrier::new(4);
            let open = || {
                start.wait();
                Keys::of_shared_cache(directory.path()).unwrap().compiled_cache()
            };
            let keys: Vec<[u8; 32]> = std::thread::scope(|scope| {
                let hosts: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
                hosts.into_iter().map(|host| host.join().unwrap()).collect()
            });
            assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        }
    }
}
