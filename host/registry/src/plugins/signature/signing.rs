//! Signing: generating a key, storing it in a file, and signing with it.
//!
//! Written here and not with the crate `minisign`: that one prints the secret key in its `Debug`,
//! does not wipe keys from memory, and has its own Ed25519, SHA-512 and BLAKE2b. This file uses
//! `ed25519-dalek` and `blake2`.

use std::fmt;
use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use blake2::digest::consts::U32;
use blake2::{Blake2b, Blake2b512, Digest};
use ed25519_dalek::Signer;

use crate::plugins::signature::{
    LEGACY, MAX_COMMENT, SignatureError, TRUSTED, TrustedKey, UNTRUSTED, decode, printed, take,
};

const PREHASHED: [u8; 2] = *b"ED";
const NOT_ENCRYPTED: [u8; 2] = [0; 2];
const SCRYPT: [u8; 2] = *b"Sc";
const BLAKE2: [u8; 2] = *b"B2";
/// What comes before the key in a secret key file: three kinds, salt, two limits of the password's
/// derivation.
const SECRET_HEAD: usize = 3 * 2 + 32 + 8 + 8;

/// A key to sign with. It is wiped from memory when dropped, and `Debug` shows its id only.
pub struct SigningKey {
    id: [u8; 8],
    key: ed25519_dalek::SigningKey,
}

impl SigningKey {
    /// A new key.
    ///
    /// # Errors
    /// Where the system gives no random bytes.
    pub fn generate() -> Result<Self, SignatureError> {
        let (mut id, mut seed) = ([0; 8], [0; 32]);
        getrandom::fill(&mut id)
            .and_then(|()| getrandom::fill(&mut seed))
            .map_err(SignatureError::Random)?;
        Ok(Self { id, key: ed25519_dalek::SigningKey::from_bytes(&seed) })
    }

    /// Writes the key, *without encryption*, to a new file with mode 0600: minisign's secret key as
    /// `minisign -G -W` writes it.
    ///
    /// # Errors
    /// Where there is a file already, or the new one cannot be written.
    pub fn to_file(&self, path: &Path) -> Result<(), SignatureError> {
        let key = self.key.to_keypair_bytes();
        let mut bytes = [&LEGACY[..], &NOT_ENCRYPTED, &BLAKE2].concat();
        bytes.resize(SECRET_HEAD, 0);
        bytes.extend_from_slice(&[&self.id[..], &key, &checksum(self.id, &key)].concat());
        let id = printed(self.id);
        let text = format!(
            "{UNTRUSTED}memhost signing key {id}, NOT ENCRYPTED: keep this file secret\n{}\n",
            STANDARD.encode(bytes)
        );
        memhost_files::durable::write_new(path, text.as_bytes(), 0o600).map_err(|source| {
            match source.kind() {
                std::io::ErrorKind::AlreadyExists => {
                    SignatureError::Exists { path: path.to_owned() }
                }
                _ => io("writing", path, source),
            }
        })
    }

    /// Reads a key that `to_file` or `minisign -G -W` wrote.
    ///
    /// # Errors
    /// Where the file cannot be read, is no signing key, is damaged, or is encrypted with a
    /// password.
    pub fn from_file(path: &Path) -> Result<Self, SignatureError> {
        let wrong = |reason| SignatureError::SecretKey { path: path.to_owned(), reason };
        let text = fs::read_to_string(path).map_err(|source| io("reading", path, source))?;
        let line = text.lines().nth(1).ok_or_else(|| wrong("it has no second line"))?;
        let bytes: [u8; SECRET_HEAD + 8 + 64 + 32] =
            decode(line).ok_or_else(|| wrong("its key is not the base64 of 158 bytes"))?;
        let kinds: [[u8; 2]; 3] = [take(&bytes, 0), take(&bytes, 2), take(&bytes, 4)];
        if kinds == [LEGACY, SCRYPT, BLAKE2] {
            return Err(wrong("it is encrypted with a password"));
        }
        if kinds != [LEGACY, NOT_ENCRYPTED, BLAKE2] {
            return Err(wrong("it is a key of another kind"));
        }
        let (id, key) = (take(&bytes, SECRET_HEAD), take::<64>(&bytes, SECRET_HEAD + 8));
        if checksum(id, &key) != take::<32>(&bytes, SECRET_HEAD + 8 + 64) {
            return Err(wrong("it is damaged, its checksum does not fit"));
        }
        let key = ed25519_dalek::SigningKey::from_keypair_bytes(&key)
            .map_err(|_| wrong("its public half does not fit its secret half"))?;
        Ok(Self { id, key })
    }

    /// The key that this one's signatures are verified with.
    #[must_use]
    pub fn public(&self) -> TrustedKey {
        TrustedKey { id: self.id, key: self.key.verifying_key().to_bytes() }
    }

    /// The text of a `.minisig` file for `bytes`, in the prehashed form that `minisign` writes. The
    /// comment is signed with it.
    ///
    /// # Errors
    /// Where the comment is too long, has a control character other than a tab, or begins or ends
    /// with a space.
    pub fn sign(&self, bytes: &[u8], trusted_comment: &str) -> Result<String, SignatureError> {
        if trusted_comment.len() > MAX_COMMENT {
            return Err(SignatureError::Comment("is too long"));
        }
        if trusted_comment.contains(|c: char| c.is_control() && c != '\t') {
            return Err(SignatureError::Comment("has a line break or another control character"));
        }
        // Some readers trim the line, and then find the comment changed.
        if trusted_comment.trim() != trusted_comment {
            return Err(SignatureError::Comment("begins or ends with a space"));
        }
        let signature = self.key.sign(&Blake2b512::digest(bytes)).to_bytes();
        let global = self.key.sign(&[&signature, trusted_comment.as_bytes()].concat()).to_bytes();
        Ok(format!(
            "{UNTRUSTED}signature from memhost key {}\n{}\n{TRUSTED}{trusted_comment}\n{}\n",
            printed(self.id),
            STANDARD.encode([&PREHASHED[..], &self.id, &signature].concat()),
            STANDARD.encode(global)
        ))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", printed(self.id))
    }
}

fn checksum(id: [u8; 8], key: &[u8; 64]) -> [u8; 32] {
    Blake2b::<U32>::new().chain_update(LEGACY).chain_update(id).chain_update(key).finalize().into()
}

fn io(action: &'static str, path: &Path, source: std::io::Error) -> SignatureError {
    SignatureError::Io { action, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::plugins::verify;

    #[test]
    fn what_is_signed_is_verified() {
        let key = SigningKey::generate().unwrap();
        let other = SigningKey::generate().unwrap();
        for (bytes, comment) in [
            (&b""[..], ""),
            (b"file", "timestamp:1\tfile:x.wasm"),
            (&[0xff; 100_000], "\u{e9}t\u{e9}"),
        ] {
            let signature = key.sign(bytes, comment).unwrap();
            let verified = verify(bytes, &signature, &[other.public(), key.public()]).unwrap();
            assert_eq!(verified.key, key.public());
            assert_eq!(verified.trusted_comment, comment);
        }
    }

    #[test]
    fn a_change_or_another_key_is_noticed() {
        let key = SigningKey::generate().unwrap();
        let signature = key.sign(b"file", "version 1").unwrap();
        let mismatch = |bytes, text: &str| matches!(verify(bytes, text, &[key.public()]), Err(SignatureError::Mismatch { id }) if id == key.public().id());
        assert!(mismatch(b"File", &signature));
        assert!(mismatch(b"file", &signature.replace("version 1", "version 2")));
        let second = key.sign(b"other file", "version 1").unwrap();
        let mixed: Vec<&str> = signature.lines().take(3).chain(second.lines().skip(3)).collect();
        assert!(mismatch(b"file", &mixed.join("\n")));
        let other = SigningKey::generate().unwrap().public();
        let untrusted = verify(b"file", &signature, &[other]);
        assert!(
            matches!(untrusted, Err(SignatureError::Untrusted { id }) if id == key.public().id())
        );
    }

    /// The weakness of the format that `verify` warns of; should it ever fail, the warning can go.
    #[test]
    fn a_prehashed_signature_relabelled_as_legacy_fits_the_hash_and_not_the_file() {
        let key = SigningKey::generate().unwrap();
        let relabelled = key.sign(b"file", "x").unwrap().replacen("\nRU", "\nRW", 1);
        assert!(verify(&Blake2b512::digest(b"file"), &relabelled, &[key.public()]).is_ok());
        assert!(verify(b"file", &relabelled, &[key.public()]).is_err());
    }

    #[test]
    fn a_comment_of_more_than_a_line_is_refused() {
        let key = SigningKey::generate().unwrap();
        for comment in ["a\nb", "a\rb", "a\u{1b}[0m", " a", "a\t", &"a".repeat(MAX_COMMENT + 1)] {
            assert!(
                matches!(key.sign(b"file", comment), Err(SignatureError::Comment(_))),
                "{comment:?}"
            );
        }
    }

    #[test]
    fn a_key_file_is_private_labelled_and_never_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("signing.key");
        let key = SigningKey::generate().unwrap();
        key.to_file(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("untrusted comment: memhost signing key ")
                && text.contains("NOT ENCRYPTED")
        );
        let read = SigningKey::from_file(&path).unwrap();
        assert_eq!(read.public(), key.public());
        assert_eq!(read.sign(b"file", "x").unwrap(), key.sign(b"file", "x").unwrap());
        assert_eq!(format!("{read:?}"), format!("SigningKey({})", key.public().id()));

        let refused = SigningKey::generate().unwrap().to_file(&path);
        assert!(matches!(refused, Err(SignatureError::Exists { path: named }) if named == path));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        let missing = directory.path().join("none").join("signing.key");
        assert!(matches!(key.to_file(&missing), Err(SignatureError::Io { action: "writing", .. })));
        assert!(matches!(
            SigningKey::from_file(&missing),
            Err(SignatureError::Io { action: "reading", .. })
        ));
    }

    #[test]
    fn what_is_no_signing_key_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("signing.key");
        let key = SigningKey::generate().unwrap();
        key.to_file(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let bytes = STANDARD.decode(text.lines().nth(1).unwrap()).unwrap();
        let reason = |text: String| {
            fs::write(&path, text).unwrap();
            match SigningKey::from_file(&path) {
                Err(SignatureError::SecretKey { path: named, reason }) if named == path => reason,
                other => panic!("{other:?}"),
            }
        };
        let changed = |at: usize, to: &[u8]| {
            let mut bytes = bytes.clone();
            bytes[at..at + to.len()].copy_from_slice(to);
            format!("untrusted comment: x\n{}\n", STANDARD.encode(bytes))
        };
        assert!(reason(String::new()).contains("no second line"));
        assert!(reason(text[..text.len() - 9].to_owned()).contains("158 bytes"));
        assert!(reason(changed(2, b"Sc")).contains("password"));
        assert!(reason(changed(0, b"XX")).contains("another kind"));
        assert!(reason(changed(SECRET_HEAD, &[0; 8])).contains("checksum"));
        let halves = [&key.key.to_bytes()[..], &SigningKey::generate().unwrap().public().key]
            .concat()
            .try_into()
            .unwrap();
        let sum = checksum(key.id, &halves);
        let mixed = changed(SECRET_HEAD + 8, &[&halves[..], &sum].concat());
        assert!(reason(mixed).contains("public half"));
    }
}
