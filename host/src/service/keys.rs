//! The host's own secret: one key in a file that only the host's user may read. Every other key is derived from it.

use std::fs;
use std::io::Write;
use std::path::Path;

use ed25519_dalek::SigningKey;

use super::OpenError;
use crate::contract::CursorKey;

const FILE: &str = "host.key";

/// Keys for each purpose.
pub(super) struct Keys([u8; 32]);

impl Keys {
    /// Reads the key, or makes one.
    pub(super) fn open(data_dir: &Path) -> Result<Self, OpenError> {
        let path = data_dir.join(FILE);
        let failed = |action, error: &dyn std::fmt::Display| OpenError::Directory {
            action,
            path: path.clone(),
            message: error.to_string(),
        };
        match fs::read(&path) {
            Ok(bytes) => {
                let key = bytes.try_into().map_err(|_| failed("reading", &"it is not 32 bytes long"))?;
                return Ok(Self(key));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("reading", &error)),
        }
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| failed("making a random key for", &error))?;
        use std::os::unix::fs::OpenOptionsExt;
        let temporary = path.with_extension("key.tmp");
        fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file| {
                file.write_all(&key)?;
                file.sync_all()
            })
            .and_then(|()| fs::rename(&temporary, &path))
            .map_err(|error| failed("writing", &error))?;
        Ok(Self(key))
    }

    pub(super) fn cursors(&self) -> CursorKey {
        CursorKey::new(self.derive("memhost 2026-11 cursors"))
    }

    pub(super) fn compiled_cache(&self) -> [u8; 32] {
        self.derive("memhost 2026-11 compiled components")
    }

    /// What requests with an idempotency key are told apart by.
    pub(super) fn digests(&self) -> [u8; 32] {
        self.derive("memhost 2026-11 requests")
    }

    /// What tombstones are signed with.
    pub(super) fn signing(&self) -> SigningKey {
        SigningKey::from_bytes(&self.derive("memhost 2026-11 tombstones"))
    }

    fn derive(&self, purpose: &str) -> [u8; 32] {
        blake3::derive_key(purpose, &self.0)
    }
}
