//! Encryption of stored secrets. Each is sealed with the host's vault key and opens only with the
//! context that it was sealed with.

use std::fmt;
use std::path::PathBuf;

use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};

/// XChaCha20-Poly1305: this byte, 24 of nonce, the value and 16 of tag.
const FORMAT: u8 = 1;
const NONCE: usize = 24;
const TAG: usize = 16;

/// Why a secret was not sealed or opened, or there is no vault key. Never contains a value or a
/// key.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum VaultError {
    #[error(
        "the sealed value is truncated, it has {bytes} bytes; restore it from a backup or set the \
         secret again"
    )]
    Truncated { bytes: usize },
    #[error(
        "the sealed value has format {found}, this host knows {FORMAT}; use the version of memhost \
         that sealed it, or set the secret again"
    )]
    Format { found: u8 },
    /// The key, the context and the sealed value do not belong together.
    #[error(
        "the sealed value does not open: it was changed, moved here from another place, or sealed \
         with another vault key; restore it or the key, or set the secret again"
    )]
    DoesNotOpen,
    #[error("the secret of {bytes} bytes was not sealed, it is too long; give a shorter one")]
    TooLong { bytes: usize },
    #[error("nothing was sealed or made, the system gave no random bytes: {0}; try again")]
    Random(getrandom::Error),
    #[error(
        "the vault key in {place} is neither 64 hex digits nor the base64 of 32 bytes; correct it, \
         or make one with `openssl rand -hex 32` if nothing is sealed yet"
    )]
    KeyText { place: String },
    #[error(
        "the vault key {path} can be used by others than its owner (mode {mode:03o}); type `chmod \
         600 '{path}'`, and replace the key if others may have read it"
    )]
    Exposed { path: PathBuf, mode: u32 },
    #[error("{action} the vault key {path} failed: {source}; check the path and its permissions")]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
}

/// Seals and opens secrets with one key, which is wiped from memory when this is dropped.
#[derive(Clone)]
pub struct Vault(XChaCha20Poly1305);

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault")
    }
}

impl Vault {
    /// A vault with this key.
    pub fn open(key: [u8; 32]) -> Self {
        Self(XChaCha20Poly1305::new(&key.into()))
    }

    /// Encrypts `value`. It opens with the same `context` only. Where a context has several parts,
    /// the caller must separate them, such as with a length before each: `ab` and `c` are not `a`
    /// and `bc`. The result is 41 bytes longer than the value, so it does not hide the value's
    /// length.
    ///
    /// # Errors
    /// Where the system gives no random bytes, or the value is longer than the cipher takes (256
    /// GiB).
    pub fn seal(&self, context: &[u8], value: &str) -> Result<Vec<u8>, VaultError> {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(VaultError::Random)?;
        let payload = Payload { msg: value.as_bytes(), aad: &bound(context) };
        let encrypted = self
            .0
            .encrypt(&nonce.into(), payload)
            .map_err(|_| VaultError::TooLong { bytes: value.len() })?;
        Ok([&[FORMAT][..], &nonce, &encrypted].concat())
    }

    /// Decrypts what `seal` made with the same key and context.
    ///
    /// # Errors
    /// Where `sealed` is truncated, of another format, changed, or sealed with another key or
    /// context.
    pub fn open_sealed(&self, context: &[u8], sealed: &[u8]) -> Result<String, VaultError> {
        let truncated = || VaultError::Truncated { bytes: sealed.len() };
        let (&format, rest) = sealed.split_first().ok_or_else(truncated)?;
        if format != FORMAT {
            return Err(VaultError::Format { found: format });
        }
        let (nonce, encrypted) = rest.split_first_chunk::<NONCE>().ok_or_else(truncated)?;
        if encrypted.len() < TAG {
            return Err(truncated());
        }
        let payload = Payload { msg: encrypted, aad: &bound(context) };
        let value =
            self.0.decrypt(&(*nonce).into(), payload).map_err(|_| VaultError::DoesNotOpen)?;
        // The conversion's own error would carry the value.
        String::from_utf8(value).map_err(|_| VaultError::DoesNotOpen)
    }
}

/// The format is authenticated, too: a value of another format cannot be passed off as one of this
/// format.
fn bound(context: &[u8]) -> Vec<u8> {
    [&[FORMAT], context].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "correct horse battery staple";

    #[test]
    fn a_sealed_value_opens_again_and_hides_what_it_is() {
        let vault = Vault::open([7; 32]);
        for value in ["", SECRET, "\u{e9}\0\n"] {
            let sealed = vault.seal(b"acme/notes/token", value).unwrap();
            assert_eq!(sealed.len(), value.len() + 1 + NONCE + TAG);
            assert_ne!(sealed, vault.seal(b"acme/notes/token", value).unwrap());
            assert_eq!(vault.open_sealed(b"acme/notes/token", &sealed).unwrap(), value);
        }
        let sealed = vault.seal(b"", SECRET).unwrap();
        assert!(!sealed.windows(7).any(|window| window == &SECRET.as_bytes()[..7]));
        assert_eq!(format!("{vault:?}"), "Vault");
    }

    #[test]
    fn a_changed_moved_or_foreign_value_does_not_open() {
        let vault = Vault::open([7; 32]);
        let sealed = vault.seal(b"acme/notes/token", SECRET).unwrap();
        for at in 1..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            let error = vault.open_sealed(b"acme/notes/token", &changed).unwrap_err();
            assert!(matches!(error, VaultError::DoesNotOpen), "{at}");
            assert!(!format!("{error} {error:?}").contains("horse"));
        }
        for context in [&b""[..], b"acme/notes/tokem", b"acme/notes/token2"] {
            assert!(matches!(vault.open_sealed(context, &sealed), Err(VaultError::DoesNotOpen)));
        }
        let other = Vault::open([8; 32]).open_sealed(b"acme/notes/token", &sealed);
        assert!(matches!(other, Err(VaultError::DoesNotOpen)));
        let longer = [&sealed[..], b"x"].concat();
        assert!(matches!(
            vault.open_sealed(b"acme/notes/token", &longer),
            Err(VaultError::DoesNotOpen)
        ));
    }

    #[test]
    fn another_format_and_a_cut_value_are_told_apart() {
        let vault = Vault::open([7; 32]);
        let mut sealed = vault.seal(b"", "").unwrap();
        for end in 0..sealed.len() {
            let cut = vault.open_sealed(b"", &sealed[..end]);
            assert!(matches!(cut, Err(VaultError::Truncated { bytes }) if bytes == end));
        }
        sealed[0] = 2;
        assert!(matches!(vault.open_sealed(b"", &sealed), Err(VaultError::Format { found: 2 })));
    }
}
