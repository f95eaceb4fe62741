//! Whose plugins are believed. A signature stands beside its file, as `plugin.wasm.sig` or `plugin.wasm.minisig`.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use crate::plugins::signature::SignatureError;

use crate::plugins::signature::TrustedKey;

use crate::plugins::signature::verify;
use memhost_types::Digest;

/// A signature file is four short lines; what is larger is none.
const MAX_SIGNATURE_BYTES: u64 = 64 << 10;

/// Whose plugins are believed.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// Whose signatures count.
    pub keys: Vec<TrustedKey>,
    /// Whether a plugin without one of them is kept out.
    pub requires_signature: bool,
    /// Builds that are let in without a signature.
    pub digests: Vec<Digest>,
}

/// What is known of a plugin's origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", tag = "state")]
pub enum Signed {
    /// Nobody signed it, or no key is trusted that could tell.
    No,
    /// By a trusted key.
    #[serde(rename_all = "camelCase")]
    By {
        /// The key's id.
        key: String,
        /// What the signer said, such as the file's name and date. Part of what is signed.
        comment: String,
    },
}

/// Why a plugin is not believed.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// There must be a signature and there is none.
    #[error("it is not signed, and this host takes signed plugins only; put its signature beside it as {}, or let this one build in with --trusted-digest {digest}", .expected.display())]
    Unsigned {
        /// Where it is looked for.
        expected: PathBuf,
        /// What the build is told by.
        digest: Digest,
    },
    /// There is a signature and it does not hold.
    #[error("{}: {error}", .path.display())]
    Signature {
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        error: SignatureError,
    },
    /// The signature could not be read.
    #[error("reading {} failed: {message}", .path.display())]
    Io {
        /// Its file.
        path: PathBuf,
        /// What the system said.
        message: String,
    },
}

/// Where the signature of a file is, or would be.
pub fn signature_path(file: &Path) -> PathBuf {
    let beside = |extension: &str| {
        let mut name = file.as_os_str().to_owned();
        name.push(extension);
        PathBuf::from(name)
    };
    let minisig = beside(".minisig");
    if minisig.exists() { minisig } else { beside(".sig") }
}

impl Trust {
    /// Whether a file is believed. Reads the signature beside it.
    ///
    /// # Errors
    /// Where a signature is missing that must be there, or one that is there does not hold.
    pub fn check(&self, file: &Path, bytes: &[u8]) -> Result<Signed, TrustError> {
        let path = signature_path(file);
        let failed = |error: std::io::Error| TrustError::Io { path: path.clone(), message: error.to_string() };
        let has_signature = !self.keys.is_empty() && path.exists();
        if !has_signature {
            let digest = Digest::of(bytes);
            let is_let_in = !self.requires_signature || self.digests.contains(&digest);
            return if is_let_in { Ok(Signed::No) } else { Err(TrustError::Unsigned { expected: path, digest }) };
        }
        if std::fs::metadata(&path).map_err(failed)?.len() > MAX_SIGNATURE_BYTES {
            let message = format!("it is larger than {MAX_SIGNATURE_BYTES} bytes");
            return Err(TrustError::Io { path, message });
        }
        let text = std::fs::read_to_string(&path).map_err(failed)?;
        match verify(bytes, &text, &self.keys) {
            Ok(verified) => Ok(Signed::By { key: verified.key.id(), comment: verified.trusted_comment }),
            Err(error) => Err(TrustError::Signature { path, error }),
        }
    }
}
