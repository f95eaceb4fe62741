//! Compiled components on disk. Loading one runs what is in it as native code, so each file is authenticated with the
//! host's own key before a byte of it is used, and the directory is the host's alone.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::component::Inspection;
use super::engine::Sandbox;
use super::error::AdmissionError;
use crate::contract::{Digest, ProviderDescription};

const MAC_BYTES: usize = 32;

/// Where compiled components are kept, and the key that they are authenticated with.
#[derive(Clone)]
pub struct CacheKey {
    directory: PathBuf,
    key: [u8; 32],
}

impl CacheKey {
    /// A cache in `directory`, made with mode 0700 where it is missing.
    ///
    /// # Errors
    /// Where the directory cannot be made.
    pub fn new(directory: PathBuf, key: [u8; 32]) -> Result<Self, AdmissionError> {
        use std::os::unix::fs::DirBuilderExt;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .map_err(|error| io("making", &directory, &error))?;
        Ok(Self { directory, key })
    }

    fn path(&self, sandbox: &Sandbox, digest: Digest) -> PathBuf {
        let digest = digest.to_string().replace(':', "-");
        self.directory.join(format!("{digest}-{:016x}", sandbox.engine_fingerprint()))
    }

    /// The compiled form and the description of a component, if both are there and are this host's work.
    #[allow(unsafe_code, reason = "the only way to load compiled code; see the comment at the call")]
    pub(super) fn read(
        &self,
        sandbox: &Sandbox,
        digest: Digest,
    ) -> Result<Option<(wasmtime::component::Component, ProviderDescription)>, AdmissionError> {
        let path = self.path(sandbox, digest);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io("reading", &path, &error)),
        };
        let tampered = || {
            // Left in place it would be found again at every start.
            let _ = fs::remove_file(&path);
            AdmissionError::Tampered { digest }
        };
        let (mac, body) = bytes.split_at_checked(MAC_BYTES).ok_or_else(tampered)?;
        let mac: [u8; MAC_BYTES] = mac.try_into().map_err(|_| tampered())?;
        if self.mac(&path, body) != blake3::Hash::from(mac) {
            return Err(tampered());
        }
        let (length, body) = body.split_at_checked(8).ok_or_else(tampered)?;
        let length = u64::from_le_bytes(length.try_into().map_err(|_| tampered())?);
        let length = usize::try_from(length).map_err(|_| tampered())?;
        let (description, compiled) = body.split_at_checked(length).ok_or_else(tampered)?;
        let description = serde_json::from_slice(description).map_err(|_| tampered())?;
        // SAFETY: `deserialize` trusts its bytes. These were written by `write` below, from `Component::serialize` of
        // an engine with the same fingerprint: the MAC over them and over the file's name, made with a key that only
        // this host has, was just checked.
        let component = unsafe { wasmtime::component::Component::deserialize(&sandbox.0.engine, compiled) };
        Ok(component.ok().map(|component| (component, description)))
    }

    pub(super) fn write(
        &self,
        sandbox: &Sandbox,
        inspection: &Inspection,
        compiled: &[u8],
    ) -> Result<(), AdmissionError> {
        use std::os::unix::fs::OpenOptionsExt;
        let path = self.path(sandbox, inspection.digest);
        let description = serde_json::to_vec(&inspection.description).map_err(|error| AdmissionError::Io {
            action: "writing",
            what: path.display().to_string(),
            message: error.to_string(),
        })?;
        let mut body = Vec::with_capacity(8 + description.len() + compiled.len());
        body.extend_from_slice(&(description.len() as u64).to_le_bytes());
        body.extend_from_slice(&description);
        body.extend_from_slice(compiled);
        let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
        let written = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file| {
                file.write_all(self.mac(&path, &body).as_bytes())?;
                file.write_all(&body)
            })
            .and_then(|()| fs::rename(&temporary, &path));
        written.map_err(|error| {
            let _ = fs::remove_file(&temporary);
            io("writing", &path, &error)
        })
    }

    /// The file's name is part of it: one component's compiled form cannot stand in for another's.
    fn mac(&self, path: &Path, body: &[u8]) -> blake3::Hash {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name);
        hasher.update(body);
        hasher.finalize()
    }
}

fn io(action: &'static str, path: &Path, error: &std::io::Error) -> AdmissionError {
    AdmissionError::Io { action, what: path.display().to_string(), message: error.to_string() }
}
