//! Which plugins are trusted. A signature is a file beside the plugin: `plugin.wasm.minisig` or
//! `plugin.wasm.sig`.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use crate::plugins::signature::{SignatureError, TrustedKey, verify};
use memhost_types::Digest;

/// The largest signature file. A signature is four short lines.
const MAX_SIGNATURE_BYTES: u64 = 64 << 10;

/// Which plugins are trusted.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// The keys whose signatures count.
    pub keys: Vec<TrustedKey>,
    /// Whether a plugin without such a signature is refused.
    pub requires_signature: bool,
    /// Builds that are admitted without a signature.
    pub digests: Vec<Digest>,
}

/// What is known of a plugin's origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", tag = "state")]
pub enum Signed {
    /// There is no signature, or no key to check it with.
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

/// Why a plugin is not trusted.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TrustError {
    #[error("it is not signed, and this host takes signed plugins only; put its signature beside \
             it as {}, or let this one build in with --trusted-digest \
             {digest}", .expected.display())]
    Unsigned { expected: PathBuf, digest: Digest },
    #[error("{}: {error}", .path.display())]
    Signature {
        path: PathBuf,
        #[source]
        error: SignatureError,
    },
    #[error("reading {} failed: {message}", .path.display())]
    Io { path: PathBuf, message: String },
}

/// Where the signature of a file is, or would be.
pub(crate) fn signature_path(file: &Path) -> PathBuf {
    let beside = |extension: &str| {
        let mut name = file.as_os_str().to_owned();
        name.push(extension);
        PathBuf::from(name)
    };
    let minisig = beside(".minisig");
    if minisig.exists() { minisig } else { beside(".sig") }
}

impl Trust {
    /// Checks a file with the signature beside it.
    ///
    /// # Errors
    /// Where a signature is required and missing, or one that is there is not valid.
    pub fn check(&self, file: &Path, bytes: &[u8]) -> Result<Signed, TrustError> {
        let path = signature_path(file);
        let failed = |error: std::io::Error| TrustError::Io {
            path: path.clone(),
            message: error.to_string(),
        };
        let has_signature = !self.keys.is_empty() && path.exists();
        if !has_signature {
            let digest = Digest::of(bytes);
            let is_let_in = !self.requires_signature || self.digests.contains(&digest);
            return if is_let_in {
                Ok(Signed::No)
            } else {
                Err(TrustError::Unsigned { expected: path, digest })
            };
        }
        let metadata = std::fs::metadata(&path).map_err(failed)?;
        if !metadata.is_file() {
            return Err(TrustError::Io { path, message: "it is not a file".to_owned() });
        }
        if metadata.len() > MAX_SIGNATURE_BYTES {
            let message = format!("it is larger than {MAX_SIGNATURE_BYTES} bytes");
            return Err(TrustError::Io { path, message });
        }
        let text = std::fs::read_to_string(&path).map_err(failed)?;
        match verify(bytes, &text, &self.keys) {
            Ok(verified) => {
                Ok(Signed::By { key: verified.key.id(), comment: verified.trusted_comment })
            }
            Err(error) => Err(TrustError::Signature { path, error }),
        }
    }
}
