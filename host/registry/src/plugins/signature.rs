//! Detached signatures in minisign's format, so that a publisher may sign with memhost or with
//! `minisign` itself.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::VerifyingKey;
use serde::{Deserialize, Serialize};

mod signing;

pub use signing::SigningKey;

const UNTRUSTED: &str = "untrusted comment: ";
const TRUSTED: &str = "trusted comment: ";
const LEGACY: [u8; 2] = *b"Ed";
/// The kind and the key's id, which every block begins with.
const HEAD: usize = 2 + 8;
/// `minisign` reads no longer line.
const MAX_COMMENT: usize = 8000;

/// Why something was not signed, or a signature was refused.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SignatureError {
    #[error("the public key cannot be read: {0}; give a minisign `.pub` file or its base64 line")]
    PublicKey(&'static str),
    #[error(
        "the signature cannot be read: {0}; fetch the `.minisig` file again, or have the file \
         signed again"
    )]
    Malformed(&'static str),
    #[error(
        "the file is signed with key {id}, which is not trusted; add that key only if you know \
         whose it is"
    )]
    Untrusted { id: String },
    /// The signature has the id of a trusted key, and that key did not sign this file.
    #[error(
        "the signature by key {id} does not fit the file: the file, the trusted comment or the \
         signature was changed; do not use the file, fetch both again"
    )]
    Mismatch { id: String },
    #[error("the trusted comment {0}; give one line of text of at most {MAX_COMMENT} bytes")]
    Comment(&'static str),
    #[error("no signing key was made, the system gave no random bytes: {0}; try again")]
    Random(getrandom::Error),
    #[error(
        "the signing key was not written: {path} exists; give another path, or move that file away"
    )]
    Exists { path: PathBuf },
    /// The reason never contains a part of the key.
    #[error(
        "the signing key {path} cannot be read: {reason}; give a key that memhost or `minisign -G \
         -W` made"
    )]
    SecretKey { path: PathBuf, reason: &'static str },
    #[error("{action} the signing key {path} failed: {source}; check the path and its permissions")]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
}

/// A public key that is trusted. Parses from minisign's `.pub` file or the base64 line in it, and
/// is written as that line.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TrustedKey {
    id: [u8; 8],
    key: [u8; 32],
}

impl TrustedKey {
    /// The key's id, in the 16 upper-case hex digits that `minisign` prints.
    #[must_use]
    pub fn id(&self) -> String {
        printed(self.id)
    }
}

fn printed(id: [u8; 8]) -> String {
    format!("{:016X}", u64::from_le_bytes(id))
}

impl FromStr for TrustedKey {
    type Err = SignatureError;

    fn from_str(text: &str) -> Result<Self, SignatureError> {
        let mut lines = text.trim().lines();
        let mut line = lines.next().unwrap_or_default();
        if line.starts_with(UNTRUSTED) {
            line = lines.next().ok_or(SignatureError::PublicKey("its second line is missing"))?;
        }
        if lines.next().is_some() {
            return Err(SignatureError::PublicKey("it has too many lines"));
        }
        let bytes: [u8; HEAD + 32] = decode(line)
            .ok_or(SignatureError::PublicKey("its key is not the base64 of 42 bytes"))?;
        let (kind, id, key) = (take(&bytes, 0), take(&bytes, 2), take(&bytes, HEAD));
        if kind != LEGACY {
            return Err(SignatureError::PublicKey("its key is not of the kind `Ed`"));
        }
        // Under a weak key a signature fits more than one file.
        if VerifyingKey::from_bytes(&key).map_or(true, |key| key.is_weak()) {
            return Err(SignatureError::PublicKey(
                "its key is no Ed25519 key that proves anything",
            ));
        }
        Ok(Self { id, key })
    }
}

impl TryFrom<String> for TrustedKey {
    type Error = SignatureError;

    fn try_from(text: String) -> Result<Self, SignatureError> {
        text.parse()
    }
}

impl From<TrustedKey> for String {
    fn from(key: TrustedKey) -> Self {
        key.to_string()
    }
}

impl fmt::Display for TrustedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode([&LEGACY[..], &self.id, &self.key].concat()))
    }
}

impl fmt::Debug for TrustedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TrustedKey({self})")
    }
}

/// What a signature proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Who signed.
    pub key: TrustedKey,
    /// The comment that was signed with the file.
    pub trusted_comment: String,
}

/// Checks that one of `keys` signed `bytes`. `signature` is the text of a `.minisig` file, legacy
/// or prehashed.
///
/// What is signed does not contain which of the two forms it is. A legacy signature may therefore
/// also be one that the same key made of a longer file whose BLAKE2b-512 hash is `bytes`. This
/// matters only where such 64 bytes have a meaning.
///
/// # Errors
/// Where the signature cannot be read, none of `keys` made it, or it does not fit.
pub fn verify(
    bytes: &[u8],
    signature: &str,
    keys: &[TrustedKey],
) -> Result<Verified, SignatureError> {
    use SignatureError::Malformed;
    let lines: Vec<&str> = signature.lines().collect();
    let [_, line, comment, global] = lines[..] else {
        return Err(Malformed("it does not have four lines"));
    };
    let head: [u8; HEAD + 64] =
        decode(line).ok_or(Malformed("its second line is not the base64 of 74 bytes"))?;
    let comment =
        comment.strip_prefix(TRUSTED).ok_or(Malformed("its third line is no trusted comment"))?;
    let _: [u8; 64] =
        decode(global).ok_or(Malformed("its fourth line is not the base64 of 64 bytes"))?;
    let parsed = minisign_verify::Signature::decode(signature)
        .map_err(|_| Malformed("it is of a kind other than `Ed` and `ED`"))?;
    let id = take(&head, 2);
    let mut error = SignatureError::Untrusted { id: printed(id) };
    // Ids are random bytes that their owner writes: two keys may have the same.
    for key in keys.iter().filter(|key| key.id == id) {
        let fits = minisign_verify::PublicKey::from_base64(&key.to_string())
            .and_then(|public| public.verify(bytes, &parsed, true));
        if fits.is_ok() {
            return Ok(Verified { key: key.clone(), trusted_comment: comment.to_owned() });
        }
        error = SignatureError::Mismatch { id: printed(id) };
    }
    Err(error)
}

fn decode<const N: usize>(line: &str) -> Option<[u8; N]> {
    STANDARD.decode(line).ok()?.try_into().ok()
}

/// `N` bytes of a block of known length.
fn take<const N: usize>(block: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|i| block[at + i])
}

#[cfg(test)]
mod tests {
    use super::*;

    // From the tests of `minisign-verify`; made by `minisign`.
    const KEY: &str = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
    const LEGACY_SIGNATURE: &str = "untrusted comment: signature from minisign secret key
RWQf6LRCGA9i59SLOFxz6NxvASXDJeRtuZykwQepbDEGt87ig1BNpWaVWuNrm73YiIiJbq71Wi+dP9eKL8OC351vwIasSSbXxwA=
trusted comment: timestamp:1555779966\tfile:test
QtKMXWyYcwdpZAlPF7tE2ENJkRd1ujvKjlj1m9RtHTBnZPa5WKU5uWRs5GoP5M/VqE81QFuMKI5k/SfNQUaOAA==";
    const PREHASHED_SIGNATURE: &str = "untrusted comment: signature from minisign secret key
RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=
trusted comment: timestamp:1556193335\tfile:test
y/rUw2y8/hOUYjZU71eHp/Wo1KZ40fGy2VJEDl34XMJM+TX48Ss/17u3IvIfbVR1FkZZSNCisQbuQY+bHwhEBg==";

    fn key() -> TrustedKey {
        KEY.parse().unwrap()
    }

    #[test]
    fn what_minisign_signed_is_verified() {
        for (signature, timestamp) in
            [(LEGACY_SIGNATURE, 1_555_779_966), (PREHASHED_SIGNATURE, 1_556_193_335)]
        {
            let verified = verify(b"test", signature, &[key()]).unwrap();
            assert_eq!(verified.key, key());
            assert_eq!(verified.trusted_comment, format!("timestamp:{timestamp}\tfile:test"));
            assert!(verify(b"test", &signature.replace('\n', "\r\n"), &[key()]).is_ok());
        }
    }

    #[test]
    fn what_minisign_signed_and_somebody_changed_is_not() {
        for signature in [LEGACY_SIGNATURE, PREHASHED_SIGNATURE] {
            let mismatch =
                |result| matches!(result, Err(SignatureError::Mismatch { id }) if id == key().id());
            assert!(mismatch(verify(b"Test", signature, &[key()])));
            assert!(mismatch(verify(
                b"test",
                &signature.replace("file:test", "file:tess"),
                &[key()]
            )));
            // The other kind: what is signed is another thing then.
            let (from, to) =
                if signature == LEGACY_SIGNATURE { ("\nRWQ", "\nRUQ") } else { ("\nRUQ", "\nRWQ") };
            assert!(mismatch(verify(b"test", &signature.replace(from, to), &[key()])));
        }
    }

    #[test]
    fn a_truncated_or_padded_signature_is_malformed() {
        let refused = |text: &str| {
            matches!(verify(b"test", text, &[key()]), Err(SignatureError::Malformed(_)))
        };
        for end in 0..PREHASHED_SIGNATURE.len() {
            assert!(refused(&PREHASHED_SIGNATURE[..end]), "{end}");
        }
        assert!(refused(&format!("{PREHASHED_SIGNATURE}\nmore")));
        assert!(refused(&PREHASHED_SIGNATURE.replace("\ntrusted comment: ", "\n")));
        assert!(refused(&PREHASHED_SIGNATURE.replace("\nRUQ", "\nRVQ")));
    }

    #[test]
    fn a_key_that_is_not_trusted_is_named() {
        let other = SigningKey::generate().unwrap().public();
        for keys in [vec![], vec![other]] {
            let error = verify(b"test", PREHASHED_SIGNATURE, &keys).unwrap_err();
            assert!(matches!(&error, SignatureError::Untrusted { id } if id == "E7620F1842B4E81F"));
            assert!(error.to_string().contains("E7620F1842B4E81F"));
        }
    }

    #[test]
    fn a_key_with_the_same_id_neither_passes_nor_hides_the_right_one() {
        let forged = TrustedKey { id: key().id, ..SigningKey::generate().unwrap().public() };
        let result = verify(b"test", PREHASHED_SIGNATURE, std::slice::from_ref(&forged));
        assert!(matches!(result, Err(SignatureError::Mismatch { .. })));
        assert_eq!(verify(b"test", PREHASHED_SIGNATURE, &[forged, key()]).unwrap().key, key());
    }

    #[test]
    fn a_public_key_is_read_from_a_line_or_a_file_and_written_as_a_line() {
        let file = format!("untrusted comment: minisign public key E7620F1842B4E81F\n{KEY}\n");
        assert_eq!(file.parse::<TrustedKey>().unwrap(), key());
        assert_eq!(key().to_string(), KEY);
        assert_eq!(key().id(), "E7620F1842B4E81F");
        let json = serde_json::to_string(&key()).unwrap();
        assert_eq!(json, format!("\"{KEY}\""));
        assert_eq!(serde_json::from_str::<TrustedKey>(&json).unwrap(), key());
    }

    #[test]
    fn what_is_no_public_key_is_refused() {
        let weak = STANDARD.encode([&LEGACY[..], &[0; 8], &[0; 32]].concat());
        let kind = KEY.replace("RWQ", "RUQ");
        let texts = [
            "",
            "untrusted comment: x",
            &KEY[..55],
            &KEY[..52],
            &weak,
            &kind,
            &format!("{KEY}\n{KEY}"),
        ];
        for text in texts {
            assert!(
                matches!(text.parse::<TrustedKey>(), Err(SignatureError::PublicKey(_))),
                "{text}"
            );
            assert!(serde_json::from_value::<TrustedKey>(text.into()).is_err());
        }
    }
}
