//! Signatures that `cosign sign --key` makes: of a short JSON text with the digest of a manifest.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use serde::Deserialize;

use crate::error::OciError;
use memhost_types::Digest;

const BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const END: &str = "-----END PUBLIC KEY-----";
/// What comes before the point in the DER form of a public key on P-256.
const HEAD: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// A point that is not compressed.
const POINT: usize = 65;
/// What cosign says that it has signed.
const KIND: &str = "cosign container image signature";

/// A public key of cosign, on P-256. Parses from the PEM text of `cosign.pub`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CosignKey {
    point: Vec<u8>,
}

impl std::str::FromStr for CosignKey {
    type Err = OciError;

    fn from_str(pem: &str) -> Result<Self, OciError> {
        let inner = pem.trim().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
        let inner = inner.ok_or(OciError::Key("it is no public key in PEM form"))?;
        let base64: String = inner.split_whitespace().collect();
        let der = STANDARD.decode(base64).map_err(|_| OciError::Key("it is no base64"))?;
        match der.strip_prefix(&HEAD) {
            Some(point) if point.len() == POINT && point[0] == 4 => {
                Ok(Self { point: point.to_owned() })
            }
            _ => Err(OciError::Key("it is no ECDSA key on P-256")),
        }
    }
}

impl CosignKey {
    /// The first 16 hex digits of the key's hash, for a person.
    #[must_use]
    pub fn id(&self) -> String {
        Digest::of(&self.point).to_string()[7..23].to_owned()
    }
}

impl std::fmt::Display for CosignKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let base64 = STANDARD.encode([&HEAD[..], &self.point].concat());
        let (first, second) = base64.split_at(base64.len().min(64));
        write!(f, "{BEGIN}\n{first}\n{second}\n{END}\n")
    }
}

/// A signature, and the text that was signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CosignSignature {
    /// The text, byte for byte.
    pub payload: Vec<u8>,
    /// The signature in base64.
    pub signature: String,
}

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Image {
    docker_manifest_digest: Digest,
}

impl CosignSignature {
    /// Checks that `key` signed this manifest. The name of the image in the signed text does not
    /// count, as in `cosign verify --key`: a mirror has another name.
    ///
    /// # Errors
    /// Where it did not, or the text is about another manifest.
    pub fn verify(&self, key: &CosignKey, manifest: Digest) -> Result<(), OciError> {
        let signature = self.signature.split_whitespace().collect::<String>();
        let signature =
            STANDARD.decode(signature).map_err(|_| OciError::Signature("it is no base64"))?;
        // Nothing of the text is read before.
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &key.point)
            .verify(&self.payload, &signature)
            .map_err(|_| OciError::Signature("the key did not make it"))?;
        let payload: Payload = serde_json::from_slice(&self.payload)
            .map_err(|_| OciError::Signature("the signed text is not that of cosign"))?;
        if payload.critical.kind != KIND {
            return Err(OciError::Signature("the signed text is of another kind"));
        }
        if payload.critical.image.docker_manifest_digest != manifest {
            return Err(OciError::Signature("it is of another manifest"));
        }
        Ok(())
    }
}

/// The vectors of sigstore-rs (`src/crypto/verification_key.rs`), which cosign made.
#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAENptdY/l3nB0yqkXLBWkZWQwo6+cu
OSWS1X9vPavpiQOoTTGC0xX57OojUadxF1cdQmrsiReWg2Wn4FneJfa8xw==
-----END PUBLIC KEY-----";
    const OTHER: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAETJP9cqpUQsn2ggmJniWGjHdlsHzD
JsB89BPhZYch0U0hKANx5TY+ncrm0s8bfJxxHoenAEFhwhuXeb4PqIrtoQ==
-----END PUBLIC KEY-----";
    const SIGNATURE: &str = "MEUCIQD6q/COgzOyW0YH1Dk+CCYSt4uAhm3FDHUwvPI55zwnlwIgE0ZK58ZOWpZw8\
                             YVmBapJhBqCfdPekIknimuO0xH8Jh8=";
    const PAYLOAD: &str = "{\"critical\":{\"identity\":{\"docker-reference\":\
                           \"registry-testing.svc.lan/busybox\"},\"image\":{\
                           \"docker-manifest-digest\":\"sha256:\
                           f3cfc9d0dbf931d3db4685ec659b7ac68e2a578219da4aae65427886e649b06b\"},\
                           \"type\":\"cosign container image signature\"},\"optional\":null}";
    const MANIFEST: &str =
        "sha256:f3cfc9d0dbf931d3db4685ec659b7ac68e2a578219da4aae65427886e649b06b";

    fn published() -> CosignSignature {
        CosignSignature { payload: PAYLOAD.into(), signature: SIGNATURE.to_owned() }
    }

    #[test]
    fn what_cosign_signed_is_verified() {
        let (key, manifest) = (KEY.parse().unwrap(), MANIFEST.parse().unwrap());
        published().verify(&key, manifest).unwrap();
        let broken = format!("{}\n{}\n", &SIGNATURE[..40], &SIGNATURE[40..]);
        CosignSignature { signature: broken, ..published() }.verify(&key, manifest).unwrap();
    }

    #[test]
    fn what_somebody_changed_is_not() {
        let (key, other): (CosignKey, CosignKey) = (KEY.parse().unwrap(), OTHER.parse().unwrap());
        let manifest: Digest = MANIFEST.parse().unwrap();
        assert!(published().verify(&other, manifest).is_err());
        let of_another = published().verify(&key, Digest::of(b"another")).unwrap_err();
        assert!(of_another.to_string().contains("another manifest"), "{of_another}");
        let payload = PAYLOAD.replace("f3cfc9", "f3cfc8").into_bytes();
        let changed = CosignSignature { payload, ..published() };
        assert!(changed.verify(&key, Digest::of(b"another")).is_err());
        for signature in ["", "this@is@a@signature", &SIGNATURE[..80]] {
            let signature = signature.to_owned();
            let cut = CosignSignature { signature, ..published() };
            assert!(cut.verify(&key, manifest).is_err());
        }
    }

    #[test]
    fn what_is_no_key_on_p_256_is_refused() {
        for text in ["", "cosign.pub", &KEY[..60], &KEY.replace("EwYHKo", "EwYHKp")] {
            assert!(text.parse::<CosignKey>().is_err(), "{text}");
        }
        assert_eq!(KEY.parse::<CosignKey>().unwrap().to_string(), format!("{KEY}\n"));
        assert!(format!("\n{}\r\n", KEY.replace('\n', "\r\n")).parse::<CosignKey>().is_ok());
    }
}
