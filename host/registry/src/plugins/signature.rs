//! Detached signatures in minisign's format: a publisher signs with `minisign -S`.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::VerifyingKey;
use serde::{Deserialize, Serialize};

const UNTRUSTED: &str = "untrusted comment: ";
const TRUSTED: &str = "trusted comment: ";
const LEGACY: [u8; 2] = *b"Ed";
/// The kind and the key's id, which every block begins with.
const HEAD: usize = 2 + 8;

/// Why a signature or a key was refused.
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

/// The result of checking a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The key that signed.
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

/// What `minisign` 0.11 made.
#[cfg(test)]
pub(super) mod fixtures {
    /// The base64 lines of two public keys (`minisign -G -W`).
    pub(crate) const KEY: &str = "RWQlD4TehUDCHNF/9AmaUao8z1ePMRZBMZmiUV0h7CwyeE+6SDDEdbse";
    pub(crate) const OTHER: &str = "RWQt4gd9s9h+1GbfDGkWLtSqLY3GXkaI8ZIqo+YmzXUagDZGWc3Rib70";
    /// `minisign -S -t 'version 1' -m FILE`, where the file is the text `file`.
    pub(crate) const PREHASHED: &str = "untrusted comment: signature from minisign secret key
RUQlD4TehUDCHGODV5TeMJoTdDzlYedW46fuNBdcJ7yDxrZYBmwwY5u+8TPHHqV4QwaP5EadVE/8O2cbpi1/5TmdKVhxkQP7GQw=
trusted comment: version 1
mH79HHZl9oaRcBc9j43NbHoxxSDAK9IDtw5BBYG5moVyT9SBoNIRgs4uNPxUuKNiUiPB4wvdT0kLgcgKJtA2DA==
";
    /// The same of the text `other file`.
    pub(crate) const OF_OTHER_FILE: &str = "untrusted comment: signature from minisign secret key
RUQlD4TehUDCHOF51CLkoKQDGIzxvEtIXBN8kvpc3Kl/kkYUUEKz4tLlerdsGxGv44++TegrYPy/YYLjMcGm41StWEQESJUKrw8=
trusted comment: version 1
+kolilQhlitrJQ9eA5NgyUHM6clQfaXDiqTGAyh+zKNV1/4SOiOSlOxwowWt+JSGDgIw2ERpumfGgLTp3BakDA==
";
    /// `minisign -S -l -t legacy -m FILE`.
    pub(crate) const LEGACY_FORM: &str = "untrusted comment: signature from minisign secret key
RWQlD4TehUDCHM4uKTSwkOp+rYV1pCdSTSvvEY1y8ngBqjsOcOjCDQdD6jagxz1YAtI3wf+JPaeNOAIQ1Fhbgq8UWT3Tiqhk4g8=
trusted comment: legacy
dE/5rvWONCf+BjTmHdWiZ17ieYBZz3/h4wfhpW2Sm4tMZkc+aZqc9o0zrDxMIfvj09HW+NQIRMPj0UYeMszxCA==
";
    /// The other key's, with the comment that `minisign` makes where none is given.
    pub(crate) const BY_OTHER: &str = "untrusted comment: signature from minisign secret key
RUQt4gd9s9h+1CpvwrD3LTqrtvoxeLHPPszEX6g852l0VxpfG72KHszOTpD3YCGhjiFNsGGf6XbT51za75ZEi4wQm+o8YcYf5wY=
trusted comment: timestamp:1795781272\tfile:f\thashed
Z2swjkbFJ9GYoR2okLwiCdLfiQ8hnDg4Gfzc8EnvM83RsffTwW3ZTBM1PVW+9bthDrHQQk1pdmc/TiU//LzYDQ==
";
}

#[cfg(test)]
mod tests {
    use super::fixtures::{BY_OTHER, KEY, LEGACY_FORM, OF_OTHER_FILE, OTHER, PREHASHED};
    use super::*;

    /// BLAKE2b-512 of the text `file`.
    const HASH: [u128; 4] = [
        0x6d36_805d_a58e_c273_bfc3_7720_4a94_293c,
        0x9718_fca3_b657_e83e_e80c_bf65_6823_3c3b,
        0x2341_b0f7_c2d4_e654_c3f5_c53d_53c0_32a9,
        0xd039_99e7_d287_bd29_a784_e9f4_3de6_a341,
    ];

    fn key() -> TrustedKey {
        KEY.parse().unwrap()
    }

    fn other() -> TrustedKey {
        OTHER.parse().unwrap()
    }

    fn is_mismatch(result: Result<Verified, SignatureError>) -> bool {
        matches!(result, Err(SignatureError::Mismatch { id }) if id == key().id())
    }

    #[test]
    fn what_minisign_signed_is_verified() {
        for (signature, signer, comment) in [
            (PREHASHED, key(), "version 1"),
            (LEGACY_FORM, key(), "legacy"),
            (BY_OTHER, other(), "timestamp:1795781272\tfile:f\thashed"),
        ] {
            let verified = verify(b"file", signature, &[other(), key()]).unwrap();
            assert_eq!((verified.key, verified.trusted_comment.as_str()), (signer, comment));
            assert!(verify(b"file", &signature.replace('\n', "\r\n"), &[other(), key()]).is_ok());
        }
    }

    #[test]
    fn what_minisign_signed_and_somebody_changed_is_not() {
        for (signature, comment) in [(PREHASHED, "version 1"), (LEGACY_FORM, "legacy")] {
            assert!(is_mismatch(verify(b"File", signature, &[key()])));
            let changed = signature.replace(comment, "version 2");
            assert!(is_mismatch(verify(b"file", &changed, &[key()])));
            // The other kind: what is signed is another thing then.
            let (from, to) =
                if signature == LEGACY_FORM { ("\nRWQ", "\nRUQ") } else { ("\nRUQ", "\nRWQ") };
            assert!(is_mismatch(verify(b"file", &signature.replace(from, to), &[key()])));
        }
    }

    #[test]
    fn two_signatures_of_one_key_cannot_be_mixed() {
        let lines = PREHASHED.lines().take(3).chain(OF_OTHER_FILE.lines().skip(3));
        let mixed: Vec<&str> = lines.collect();
        assert!(verify(b"other file", OF_OTHER_FILE, &[key()]).is_ok());
        assert!(is_mismatch(verify(b"file", &mixed.join("\n"), &[key()])));
    }

    /// The weakness of the format that `verify` warns of; should it ever fail, the warning can go.
    #[test]
    fn a_prehashed_signature_relabelled_as_legacy_fits_the_hash_and_not_the_file() {
        let relabelled = PREHASHED.replacen("\nRU", "\nRW", 1);
        let hash = HASH.map(u128::to_be_bytes).concat();
        assert!(verify(&hash, &relabelled, &[key()]).is_ok());
        assert!(verify(b"file", &relabelled, &[key()]).is_err());
    }

    #[test]
    fn a_truncated_or_padded_signature_is_malformed() {
        let refused = |text: &str| {
            matches!(verify(b"file", text, &[key()]), Err(SignatureError::Malformed(_)))
        };
        let signature = PREHASHED.trim_end();
        for end in 0..signature.len() {
            assert!(refused(&signature[..end]), "{end}");
        }
        assert!(refused(&format!("{signature}\nmore")));
        assert!(refused(&signature.replace("\ntrusted comment: ", "\n")));
        assert!(refused(&signature.replace("\nRUQ", "\nRVQ")));
    }

    #[test]
    fn a_key_that_is_not_trusted_is_named() {
        for keys in [vec![], vec![other()]] {
            let error = verify(b"file", PREHASHED, &keys).unwrap_err();
            assert!(matches!(&error, SignatureError::Untrusted { id } if id == "1CC24085DE840F25"));
            assert!(error.to_string().contains("1CC24085DE840F25"));
        }
    }

    #[test]
    fn a_key_with_the_same_id_neither_passes_nor_hides_the_right_one() {
        let forged = TrustedKey { id: key().id, ..other() };
        assert!(is_mismatch(verify(b"file", PREHASHED, std::slice::from_ref(&forged))));
        assert_eq!(verify(b"file", PREHASHED, &[forged, key()]).unwrap().key, key());
    }

    #[test]
    fn a_public_key_is_read_from_a_line_or_a_file_and_written_as_a_line() {
        let file = format!("untrusted comment: minisign public key 1CC24085DE840F25\n{KEY}\n");
        assert_eq!(file.parse::<TrustedKey>().unwrap(), key());
        assert_eq!(key().to_string(), KEY);
        assert_eq!(key().id(), "1CC24085DE840F25");
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
