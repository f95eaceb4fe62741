//! Which plugins are trusted. A signature is a file beside the plugin: `plugin.wasm.minisig` or
//! `plugin.wasm.sig`, or one of cosign in `plugin.wasm.cosign`.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plugins::cosign::{CosignError, CosignKey, CosignProof};
use crate::plugins::signature::{SignatureError, TrustedKey, verify};
use memhost_types::Digest;

/// The largest signature file. A signature is four short lines.
pub(crate) const MAX_SIGNATURE_BYTES: u64 = 64 << 10;

/// Which plugins are trusted.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// The keys whose signatures count.
    pub keys: Vec<TrustedKey>,
    /// The keys of cosign whose signatures count, where there is none of minisign.
    pub cosign_keys: Vec<CosignKey>,
    /// Whether a plugin without such a signature is refused.
    pub requires_signature: bool,
    /// Builds that are admitted without a signature.
    pub digests: Vec<Digest>,
}

/// The origin of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", tag = "state")]
pub enum Signed {
    /// There is no signature, or no key to check it with.
    No,
    /// By a trusted key.
    #[serde(rename_all = "camelCase")]
    By {
        /// The key's id.
        key: String,
        /// The signer's comment, such as the file's name and date. It is signed, too.
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
    #[error("{}: {error}", .path.display())]
    Cosign {
        path: PathBuf,
        #[source]
        error: CosignError,
    },
    #[error("reading {} failed: {message}", .path.display())]
    Io { path: PathBuf, message: String },
}

/// Where the signature of a file is, or would be.
pub(crate) fn signature_path(file: &Path) -> PathBuf {
    let (minisig, sig) = (beside(file, ".minisig"), beside(file, ".sig"));
    if sig.exists() && !minisig.exists() { sig } else { minisig }
}

/// Where the signature of cosign is, or would be.
pub(crate) fn cosign_path(file: &Path) -> PathBuf {
    beside(file, ".cosign")
}

fn beside(file: &Path, extension: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(extension);
    PathBuf::from(name)
}

/// The text of a file with a signature.
fn text(path: &Path) -> Result<String, TrustError> {
    let failed = |error: std::io::Error| TrustError::Io {
        path: path.to_owned(),
        message: error.to_string(),
    };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    let message = match metadata.is_file() {
        false => "it is not a file".to_owned(),
        true if metadata.len() > MAX_SIGNATURE_BYTES => {
            format!("it is larger than {MAX_SIGNATURE_BYTES} bytes")
        }
        true => return std::fs::read_to_string(path).map_err(failed),
    };
    Err(TrustError::Io { path: path.to_owned(), message })
}

impl Trust {
    /// Checks a file with the signature beside it.
    ///
    /// # Errors
    /// Where a signature is required and missing, or one that is there is not valid.
    pub fn check(&self, file: &Path, bytes: &[u8]) -> Result<Signed, TrustError> {
        let path = signature_path(file);
        let has_signature = !self.keys.is_empty() && path.exists();
        let cosign = cosign_path(file);
        if !has_signature && !self.cosign_keys.is_empty() && cosign.exists() {
            return self.check_cosign(cosign, bytes);
        }
        if !has_signature {
            let digest = Digest::of(bytes);
            let is_let_in = !self.requires_signature || self.digests.contains(&digest);
            return if is_let_in {
                Ok(Signed::No)
            } else {
                Err(TrustError::Unsigned { expected: path, digest })
            };
        }
        let text = text(&path)?;
        match verify(bytes, &text, &self.keys) {
            Ok(verified) => {
                Ok(Signed::By { key: verified.key.id(), comment: verified.trusted_comment })
            }
            Err(error) => Err(TrustError::Signature { path, error }),
        }
    }

    fn check_cosign(&self, path: PathBuf, bytes: &[u8]) -> Result<Signed, TrustError> {
        let text = text(&path)?;
        let proof = CosignProof::read(text.as_bytes());
        match proof.and_then(|proof| proof.verify(bytes, &self.cosign_keys)) {
            Ok(key) => Ok(Signed::By { key: key.id(), comment: "with cosign".to_owned() }),
            Err(error) => Err(TrustError::Cosign { path, error }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::plugins::signature::fixtures::{BY_OTHER, KEY, OF_OTHER_FILE, PREHASHED};

    /// A plugin with these files beside it; its bytes are the text `file`.
    fn plugin(beside: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("p.wasm");
        for (extension, text) in beside {
            fs::write(directory.path().join(format!("p.wasm{extension}")), text).unwrap();
        }
        (directory, path)
    }

    fn trust(requires_signature: bool) -> Trust {
        Trust { keys: vec![KEY.parse().unwrap()], requires_signature, ..Trust::default() }
    }

    fn by_the_key() -> Signed {
        Signed::By { key: "1CC24085DE840F25".to_owned(), comment: "version 1".to_owned() }
    }

    #[test]
    fn a_signature_is_checked_under_either_name() {
        for name in [".minisig", ".sig"] {
            let (_directory, path) = plugin(&[(name, PREHASHED)]);
            assert_eq!(trust(true).check(&path, b"file").unwrap(), by_the_key());
        }
        // `minisign` writes the one that counts.
        let (_directory, path) = plugin(&[(".minisig", PREHASHED), (".sig", "junk")]);
        assert_eq!(trust(true).check(&path, b"file").unwrap(), by_the_key());
    }

    #[test]
    fn without_a_key_there_is_nothing_to_check_with() {
        let (_directory, path) = plugin(&[(".minisig", "junk")]);
        assert_eq!(Trust::default().check(&path, b"file").unwrap(), Signed::No);
    }

    #[test]
    fn a_signature_that_does_not_hold_refuses_also_where_none_is_required() {
        for text in [OF_OTHER_FILE, BY_OTHER, "junk", ""] {
            let (_directory, path) = plugin(&[(".minisig", text)]);
            let error = trust(false).check(&path, b"file").unwrap_err();
            assert!(matches!(&error, TrustError::Signature { .. }), "{error}");
            assert!(error.to_string().contains("p.wasm.minisig"), "{error}");
        }
    }

    #[test]
    fn a_missing_signature_refuses_where_one_is_required() {
        let (_directory, path) = plugin(&[]);
        assert_eq!(trust(false).check(&path, b"file").unwrap(), Signed::No);
        let error = trust(true).check(&path, b"file").unwrap_err().to_string();
        let digest = Digest::of(b"file").to_string();
        assert!(error.contains("p.wasm.minisig") && error.contains(&digest), "{error}");
    }

    #[test]
    fn a_build_that_is_named_needs_no_signature() {
        let (_directory, path) = plugin(&[]);
        let trust = Trust { digests: vec![Digest::of(b"file")], ..trust(true) };
        assert_eq!(trust.check(&path, b"file").unwrap(), Signed::No);
        assert!(trust.check(&path, b"another").is_err());
    }

    #[test]
    fn an_odd_file_in_the_place_of_a_signature_refuses() {
        let (directory, path) = plugin(&[]);
        let signature = directory.path().join("p.wasm.minisig");
        fs::create_dir(&signature).unwrap();
        let error = trust(false).check(&path, b"file").unwrap_err().to_string();
        assert!(error.contains("it is not a file"), "{error}");
        fs::remove_dir(&signature).unwrap();
        fs::File::create(&signature).unwrap().set_len(MAX_SIGNATURE_BYTES + 1).unwrap();
        let error = trust(false).check(&path, b"file").unwrap_err().to_string();
        assert!(error.contains("larger than"), "{error}");
        fs::write(&signature, [0xff; 9]).unwrap();
        assert!(trust(false).check(&path, b"file").is_err());
    }
}
