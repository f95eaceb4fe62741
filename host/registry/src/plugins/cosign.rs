//! Signatures that `cosign sign --key` makes: of a short JSON text with the digest of a manifest,
//! which has the digest of a component. All three are in a file beside it, `plugin.wasm.cosign`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

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
/// The media type of a component in a manifest.
const COMPONENT: &str = "application/wasm";

/// Why a signature or a key of cosign was refused.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum CosignError {
    #[error("the cosign key cannot be read: {0}; give the text of `cosign.pub` of a P-256 key")]
    Key(&'static str),
    #[error("the file with the cosign signature cannot be read: {0}; pull the provider again")]
    Malformed(String),
    #[error("the cosign signature is not valid: {0}; do not use this provider")]
    Proof(&'static str),
}

/// A public key of cosign, on P-256. Parses from the PEM text of `cosign.pub`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CosignKey {
    point: Vec<u8>,
}

impl std::str::FromStr for CosignKey {
    type Err = CosignError;

    fn from_str(pem: &str) -> Result<Self, CosignError> {
        let inner = pem.trim().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
        let inner = inner.ok_or(CosignError::Key("it is no public key in PEM form"))?;
        let base64: String = inner.split_whitespace().collect();
        let der = STANDARD.decode(base64).map_err(|_| CosignError::Key("it is no base64"))?;
        match der.strip_prefix(&HEAD) {
            Some(point) if point.len() == POINT && point[0] == 4 => {
                Ok(Self { point: point.to_owned() })
            }
            _ => Err(CosignError::Key("it is no ECDSA key on P-256")),
        }
    }
}

impl CosignKey {
    /// The beginning of the key's digest, for a person.
    #[must_use]
    pub fn id(&self) -> String {
        Digest::of(&self.point).short()
    }
}

impl std::fmt::Display for CosignKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let base64 = STANDARD.encode([&HEAD[..], &self.point].concat());
        let (first, second) = base64.split_at(base64.len().min(64));
        write!(f, "{BEGIN}\n{first}\n{second}\n{END}\n")
    }
}

/// A signature, with what leads from it to a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CosignProof {
    /// The manifest, byte for byte.
    pub manifest: Vec<u8>,
    /// The text that was signed, byte for byte.
    pub payload: Vec<u8>,
    /// The signature in base64.
    pub signature: String,
}

/// The file beside a component: JSON with base64 in it.
#[derive(Serialize, Deserialize)]
struct Written {
    manifest: String,
    payload: String,
    signature: String,
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

#[derive(Deserialize)]
struct Manifest {
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layer {
    media_type: String,
    digest: Digest,
}

impl CosignProof {
    /// From the text of a file.
    ///
    /// # Errors
    /// Where it is none.
    pub fn read(text: &[u8]) -> Result<Self, CosignError> {
        let wrong = |why: String| CosignError::Malformed(why);
        let written: Written =
            serde_json::from_slice(text).map_err(|error| wrong(error.to_string()))?;
        let decode = |text: &str| STANDARD.decode(text).map_err(|error| wrong(error.to_string()));
        Ok(Self {
            manifest: decode(&written.manifest)?,
            payload: decode(&written.payload)?,
            signature: written.signature,
        })
    }

    /// The text of a file.
    #[must_use]
    pub fn written(&self) -> String {
        let (manifest, payload) = (STANDARD.encode(&self.manifest), STANDARD.encode(&self.payload));
        let written = Written { manifest, payload, signature: self.signature.clone() };
        // It has three texts.
        serde_json::to_string(&written).unwrap_or_default()
    }

    /// Checks that one of `keys` signed the manifest of this component, and answers it. The name
    /// of the image in the signed text does not count, as in `cosign verify --key`: a mirror has
    /// another name.
    ///
    /// # Errors
    /// Where none did, or the text is about another manifest or the manifest about another
    /// component.
    pub fn verify(&self, component: &[u8], keys: &[CosignKey]) -> Result<CosignKey, CosignError> {
        let signer = keys.iter().find(|key| self.is_by(key));
        // Nothing is read that nobody signed.
        let signer = signer.ok_or(CosignError::Proof("no trusted key made it"))?;
        self.check_payload()?;
        let manifest: Manifest = serde_json::from_slice(&self.manifest)
            .map_err(|_| CosignError::Proof("what was signed is no manifest"))?;
        let mut layers = manifest.layers.iter().filter(|layer| layer.media_type == COMPONENT);
        match (layers.next(), layers.next()) {
            (Some(layer), None) if layer.digest == Digest::of(component) => Ok(signer.clone()),
            _ => Err(CosignError::Proof("it is of another component")),
        }
    }

    fn is_by(&self, key: &CosignKey) -> bool {
        let signature = self.signature.split_whitespace().collect::<String>();
        STANDARD.decode(signature).is_ok_and(|signature| {
            let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &key.point);
            key.verify(&self.payload, &signature).is_ok()
        })
    }

    fn check_payload(&self) -> Result<(), CosignError> {
        let payload: Payload = serde_json::from_slice(&self.payload)
            .map_err(|_| CosignError::Proof("the signed text is not that of cosign"))?;
        if payload.critical.kind != KIND {
            return Err(CosignError::Proof("the signed text is of another kind"));
        }
        match payload.critical.image.docker_manifest_digest == Digest::of(&self.manifest) {
            true => Ok(()),
            false => Err(CosignError::Proof("it is of another manifest")),
        }
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

    /// The manifest of the vector was not published, so its digest is compared and no more.
    fn published() -> CosignProof {
        let (payload, signature) = (PAYLOAD.into(), SIGNATURE.to_owned());
        CosignProof { manifest: b"not published".to_vec(), payload, signature }
    }

    #[test]
    fn what_cosign_signed_is_verified() {
        let key: CosignKey = KEY.parse().unwrap();
        assert!(published().is_by(&key));
        let broken = format!("{}\n{}\n", &SIGNATURE[..40], &SIGNATURE[40..]);
        assert!(CosignProof { signature: broken, ..published() }.is_by(&key));
        let payload: Payload = serde_json::from_slice(&published().payload).unwrap();
        assert_eq!(payload.critical.image.docker_manifest_digest.to_string(), MANIFEST);
        let error = published().verify(b"component", &[key]).unwrap_err();
        assert!(error.to_string().contains("another manifest"), "{error}");
    }

    #[test]
    fn what_somebody_changed_is_not() {
        let (key, other): (CosignKey, CosignKey) = (KEY.parse().unwrap(), OTHER.parse().unwrap());
        assert!(!published().is_by(&other));
        let payload = PAYLOAD.replace("f3cfc9", "f3cfc8").into_bytes();
        assert!(!CosignProof { payload, ..published() }.is_by(&key));
        for signature in ["", "this@is@a@signature", &SIGNATURE[..80]] {
            let cut = CosignProof { signature: signature.to_owned(), ..published() };
            assert!(!cut.is_by(&key), "{signature}");
        }
        let error = published().verify(b"component", &[other]).unwrap_err();
        assert!(error.to_string().contains("no trusted key"), "{error}");
    }

    /// A proof of a key of this test, for the component `component`.
    fn made(
        change: impl Fn(&mut serde_json::Value, &mut serde_json::Value),
    ) -> (CosignProof, CosignKey) {
        use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
        let random = ring::rand::SystemRandom::new();
        let kind = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(kind, pkcs8.as_ref(), &random).unwrap();
        let layer = serde_json::json!({
            "mediaType": COMPONENT, "digest": Digest::of(b"component"), "size": 9,
        });
        let mut manifest = serde_json::json!({ "schemaVersion": 2, "layers": [layer] });
        let mut payload: serde_json::Value = serde_json::from_str(PAYLOAD).unwrap();
        change(&mut manifest, &mut payload);
        let manifest = manifest.to_string().into_bytes();
        payload["critical"]["image"]["docker-manifest-digest"] =
            Digest::of(&manifest).to_string().into();
        let payload = payload.to_string().into_bytes();
        let signature = STANDARD.encode(pair.sign(&random, &payload).unwrap());
        let key = CosignKey { point: pair.public_key().as_ref().to_owned() };
        (CosignProof { manifest, payload, signature }, key)
    }

    #[test]
    fn a_signature_leads_to_one_component() {
        let (proof, key) = made(|_, _| ());
        let keys = [OTHER.parse().unwrap(), key.clone()];
        assert_eq!(proof.verify(b"component", &keys).unwrap(), key);
        assert!(proof.verify(b"another", &keys).is_err());
        let read = CosignProof::read(proof.written().as_bytes()).unwrap();
        assert_eq!(read, proof);
        assert!(CosignProof::read(b"{}").is_err());
        let manifest = String::from_utf8(proof.manifest.clone()).unwrap() + " ";
        let changed = CosignProof { manifest: manifest.into_bytes(), ..proof };
        assert!(changed.verify(b"component", &keys).is_err());
        let (two, key) = made(|manifest, _| {
            let layer = manifest["layers"][0].clone();
            manifest["layers"].as_array_mut().unwrap().push(layer);
        });
        assert!(two.verify(b"component", &[key]).is_err());
        let (other, key) = made(|_, payload| payload["critical"]["type"] = "another".into());
        let error = other.verify(b"component", &[key]).unwrap_err();
        assert!(error.to_string().contains("another kind"), "{error}");
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
