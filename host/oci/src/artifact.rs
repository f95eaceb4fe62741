//! A provider in a registry: the component, what is attached to it, and both ways.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::{Call, Client, Options};
use crate::error::OciError;
use crate::manifest::{
    Annotations, COMPONENT, CONFIG, COSIGN_SIGNATURE, Config, DESCRIPTION, Descriptor, EMPTY,
    Index, MANIFEST, MINISIGN, Manifest, SIMPLE_SIGNING, TITLE, Tags, VERSION, World,
};
use crate::reference::Reference;
use memhost_types::Digest;

/// The largest manifest, which is also the specification's bound, in bytes.
const MAX_MANIFEST: u64 = 4 << 20;
/// The largest signature, and the largest text that cosign signs, in bytes.
const MAX_SIGNATURE: u64 = 64 << 10;
/// How many signatures of cosign are read.
const MAX_SIGNATURES: usize = 32;
/// The largest bill of materials, in bytes.
pub const MAX_SBOM_BYTES: u64 = 16 << 20;
/// The largest page of tags in bytes, and how many pages are read.
const MAX_TAGS: u64 = 1 << 20;
const MAX_PAGES: usize = 20;

/// The ends of the tags of what is attached, such as `sha256-<digest>.minisig`. The others are
/// those of cosign.
const TAG_OF_MINISIGN: &str = "minisig";
const TAG_OF_COSIGN: &str = "sig";
const TAG_OF_SBOM: &str = "sbom";

/// A repository of a registry.
pub struct Registry {
    client: Client,
    reference: Reference,
}

/// A component that was read, and its manifest.
pub struct Pulled {
    /// The manifest's digest, which names what was read for ever.
    pub digest: Digest,
    /// The manifest, byte for byte.
    pub manifest: Vec<u8>,
    /// The component.
    pub component: Vec<u8>,
}

/// A signature that cosign made with a key, and the text that was signed. Nothing of it is checked
/// here.
pub struct CosignSignature {
    /// The text, byte for byte.
    pub payload: Vec<u8>,
    /// The signature in base64.
    pub signature: String,
}

/// A bill of materials.
pub struct Sbom {
    /// Its media type, such as `application/vnd.cyclonedx+json`.
    pub media_type: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// A component to be written, and what is known of it.
pub struct Build<'a> {
    /// The component.
    pub bytes: &'a [u8],
    /// The file's name for tools that write it to a disk.
    pub file_name: String,
    /// Its version.
    pub version: String,
    /// One sentence about it.
    pub description: String,
    /// What it exports.
    pub exports: &'a [String],
    /// What it imports.
    pub imports: &'a [String],
    /// When it was built.
    pub created: jiff::Timestamp,
}

impl Build<'_> {
    /// The digest of the manifest that `push` writes: the same for the same build and time.
    ///
    /// # Errors
    /// Where a document cannot be written.
    pub fn digest(&self) -> Result<Digest, OciError> {
        Ok(Digest::of(&written(&self.documents()?.1)?))
    }

    /// The config and the manifest.
    fn documents(&self) -> Result<(Vec<u8>, Manifest), OciError> {
        let mut layer = Descriptor::of(COMPONENT, self.bytes);
        layer.annotations = Some(of_one(TITLE, &self.file_name));
        let config = written(&Config {
            created: self.created,
            author: None,
            architecture: "wasm",
            os: "wasip2",
            layer_digests: vec![layer.digest],
            component: World { exports: self.exports, imports: self.imports, target: None },
        })?;
        let mut annotations = of_one(VERSION, &self.version);
        annotations.insert(DESCRIPTION.to_owned(), self.description.clone());
        let manifest = Manifest {
            config: Descriptor::of(CONFIG, &config),
            layers: vec![layer],
            annotations: Some(annotations),
            ..empty()
        };
        Ok((config, manifest))
    }
}

impl Registry {
    /// The repository of a reference, to read from it.
    pub fn to_pull(reference: &Reference, options: &Options) -> Self {
        let client = Client::new(reference, options, false);
        Self { client, reference: reference.clone() }
    }

    /// The repository of a reference, to write to it.
    pub fn to_push(reference: &Reference, options: &Options) -> Self {
        let client = Client::new(reference, options, true);
        Self { client, reference: reference.clone() }
    }

    /// Reads the component at a tag or a digest. What it answers has the digests that the manifest
    /// says, and the manifest has that of the reference, if it names one.
    ///
    /// # Errors
    /// Where there is none, it is larger than `max` bytes, or was changed.
    pub fn pull(&self, reference: &Reference, max: u64) -> Result<Pulled, OciError> {
        let what = reference.to_string();
        let named = match (reference.digest, &reference.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, Some(tag)) => tag.clone(),
            (None, None) => "latest".to_owned(),
        };
        let (digest, manifest, bytes) = self.document(&what, &named, reference.digest)?;
        let mut layers = manifest.layers.iter().filter(|layer| layer.media_type == COMPONENT);
        let (Some(layer), None) = (layers.next(), layers.next()) else {
            let why = format!("its manifest does not have one layer of the type {COMPONENT}");
            return Err(OciError::malformed(what, why));
        };
        Ok(Pulled { digest, manifest: bytes, component: self.blob(&what, layer, max)? })
    }

    /// The digest of the manifest at a tag. `None`: there is no such tag.
    ///
    /// # Errors
    /// Where the registry does not say it.
    pub fn digest_at(&self, tag: &str) -> Result<Option<Digest>, OciError> {
        let what = self.reference.at(tag).to_string();
        Ok(found(self.manifest(&what, tag, None))?.map(|(digest, _)| digest))
    }

    /// All tags but those of what is attached.
    ///
    /// # Errors
    /// Where the registry does not list them.
    pub fn tags(&self) -> Result<Vec<String>, OciError> {
        let what = format!("the tags of {}", self.reference.name);
        let (mut all, mut url) = (Vec::new(), self.client.url("tags/list?n=1000"));
        for _ in 0..MAX_PAGES {
            let mut response = self.client.expect(&Call::get(url.clone()))?;
            let next = response.headers().get("link").and_then(|link| link.to_str().ok());
            // `</v2/NAME/tags/list?last=…>; rel="next"`
            let next = next.and_then(|link| link.strip_prefix('<')?.split_once('>'));
            let next = next.map(|(path, _)| path.to_owned());
            let tags: Tags = parse(&what, &self.client.read(&what, &mut response, MAX_TAGS)?)?;
            let tags = tags.tags.unwrap_or_default().into_iter();
            all.extend(tags.filter(|tag| !tag.starts_with("sha256-")));
            match next.as_deref().and_then(|path| path.strip_prefix("/v2/")?.split_once("/tags/")) {
                Some((_, rest)) => url = self.client.url(&format!("tags/{rest}")),
                None => return Ok(all),
            }
        }
        Err(OciError::malformed(what, format!("there are more than {MAX_PAGES} pages of them")))
    }

    /// The minisign signature that is attached to a manifest, as the text of a `.minisig` file.
    /// `None`: there is none.
    ///
    /// # Errors
    /// Where it is too large, or was changed.
    pub fn minisign(&self, subject: Digest) -> Result<Option<String>, OciError> {
        let what = format!("the signature of {subject}");
        let Some(manifest) = self.attached(&what, subject, TAG_OF_MINISIGN, MINISIGN)? else {
            return Ok(None);
        };
        let layer = manifest.layers.iter().find(|layer| layer.media_type == MINISIGN);
        let layer = layer.ok_or_else(|| OciError::malformed(&*what, "it has no signature"))?;
        let text = String::from_utf8(self.blob(&what, layer, MAX_SIGNATURE)?);
        text.map(Some).map_err(|_| OciError::malformed(what, "it is no text"))
    }

    /// The signatures that cosign attached to a manifest.
    ///
    /// # Errors
    /// Where they are too large, or were changed.
    pub fn cosign(&self, subject: Digest) -> Result<Vec<CosignSignature>, OciError> {
        let what = format!("the cosign signature of {subject}");
        let at_tag = self.manifest(&what, &tag_of(subject, TAG_OF_COSIGN), None);
        let Some((_, manifest)) = found(at_tag)? else { return Ok(Vec::new()) };
        let layers = manifest.layers.iter().filter(|layer| layer.media_type == SIMPLE_SIGNING);
        let signatures = layers.take(MAX_SIGNATURES).filter_map(|layer| {
            let signature = layer.annotations.as_ref()?.get(COSIGN_SIGNATURE)?.clone();
            let payload = self.blob(&what, layer, MAX_SIGNATURE);
            Some(payload.map(|payload| CosignSignature { payload, signature }))
        });
        signatures.collect()
    }

    /// The bill of materials that is attached to a manifest. `None`: there is none.
    ///
    /// # Errors
    /// Where it is too large, or was changed.
    pub fn sbom(&self, subject: Digest) -> Result<Option<Sbom>, OciError> {
        let what = format!("the bill of materials of {subject}");
        let at_tag = self.manifest(&what, &tag_of(subject, TAG_OF_SBOM), None);
        let Some((_, manifest)) = found(at_tag)? else { return Ok(None) };
        let Some(layer) = manifest.layers.first() else { return Ok(None) };
        let bytes = self.blob(&what, layer, MAX_SBOM_BYTES)?;
        Ok(Some(Sbom { media_type: layer.media_type.clone(), bytes }))
    }

    /// Writes a component to a tag, as `wkg` does. Answers the manifest's digest.
    ///
    /// # Errors
    /// Where the registry does not take it.
    pub fn push(&self, tag: &str, build: &Build<'_>) -> Result<Digest, OciError> {
        let (config, manifest) = build.documents()?;
        self.upload(build.bytes)?;
        self.upload(&config)?;
        self.put(tag, &manifest)
    }

    /// Attaches a minisign signature to a manifest.
    ///
    /// # Errors
    /// Where the registry does not take it.
    pub fn attach_minisign(&self, subject: Digest, signature: &str) -> Result<(), OciError> {
        self.attach(subject, TAG_OF_MINISIGN, MINISIGN, signature.as_bytes())
    }

    /// Attaches a bill of materials to a manifest.
    ///
    /// # Errors
    /// Where the registry does not take it.
    pub fn attach_sbom(&self, subject: Digest, sbom: &Sbom) -> Result<(), OciError> {
        self.attach(subject, TAG_OF_SBOM, &sbom.media_type, &sbom.bytes)
    }

    /// Every registry has tags. Those that list what is attached to a manifest list this, too.
    fn attach(&self, to: Digest, end: &str, kind: &str, blob: &[u8]) -> Result<(), OciError> {
        let what = format!("the manifest {to}");
        let (_, _, bytes) = self.document(&what, &to.to_string(), Some(to))?;
        let manifest = Manifest {
            artifact_type: Some(kind.to_owned()),
            config: Descriptor::of(EMPTY.0, EMPTY.1),
            layers: vec![Descriptor::of(kind, blob)],
            subject: Some(Descriptor::of(MANIFEST, &bytes)),
            ..empty()
        };
        self.upload(EMPTY.1)?;
        self.upload(blob)?;
        self.put(&tag_of(to, end), &manifest).map(drop)
    }

    /// The manifest of what is attached: at its tag, or else in the registry's list.
    fn attached(
        &self,
        what: &str,
        subject: Digest,
        end: &str,
        kind: &str,
    ) -> Result<Option<Manifest>, OciError> {
        if let Some((_, at_tag)) = found(self.manifest(what, &tag_of(subject, end), None))? {
            return Ok(Some(at_tag));
        }
        let url = self.client.url(&format!("referrers/{subject}"));
        let mut response = self.client.send(&Call::get(url))?;
        if response.status().as_u16() != 200 {
            // This registry lists nothing.
            return Ok(None);
        }
        let bytes = self.client.read(what, &mut response, MAX_MANIFEST)?;
        let listed: Index = parse(what, &bytes)?;
        let is_it = |listed: &&Descriptor| listed.artifact_type.as_deref() == Some(kind);
        let Some(descriptor) = listed.manifests.iter().find(is_it) else { return Ok(None) };
        let digest = descriptor.digest;
        let (_, manifest) = self.manifest(what, &digest.to_string(), Some(digest))?;
        // The list is the registry's word; this is the manifest's.
        let is_of_it = manifest.subject.as_ref().is_some_and(|of| of.digest == subject);
        Ok(is_of_it.then_some(manifest))
    }

    fn manifest(
        &self,
        what: &str,
        named: &str,
        expected: Option<Digest>,
    ) -> Result<(Digest, Manifest), OciError> {
        let (digest, manifest, _) = self.document(what, named, expected)?;
        Ok((digest, manifest))
    }

    /// A manifest with its digest and its bytes.
    fn document(
        &self,
        what: &str,
        named: &str,
        expected: Option<Digest>,
    ) -> Result<(Digest, Manifest, Vec<u8>), OciError> {
        let accept = [("accept", MANIFEST)];
        let call = Call::accepting(self.client.url(&format!("manifests/{named}")), &accept);
        let mut response = self.client.expect(&call).map_err(|error| match error {
            OciError::NotFound { registry, .. } => {
                OciError::NotFound { registry, what: what.to_owned() }
            }
            other => other,
        })?;
        let bytes = self.client.read(what, &mut response, MAX_MANIFEST)?;
        let found = Digest::of(&bytes);
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(OciError::Changed { what: what.to_owned(), expected, found });
        }
        let manifest: Manifest = parse(what, &bytes)?;
        match manifest.media_type.as_deref() {
            None | Some(MANIFEST) => Ok((found, manifest, bytes)),
            Some(other) => {
                let why = format!("it is a manifest of the type `{}`", other.escape_debug());
                Err(OciError::malformed(what, why))
            }
        }
    }

    fn blob(&self, what: &str, descriptor: &Descriptor, max: u64) -> Result<Vec<u8>, OciError> {
        if descriptor.size > max {
            return Err(OciError::TooLarge { what: what.to_owned(), max });
        }
        let expected = descriptor.digest;
        let call = Call::get(self.client.url(&format!("blobs/{expected}")));
        let mut response = self.client.expect(&call)?;
        let bytes = self.client.read(what, &mut response, descriptor.size)?;
        match Digest::of(&bytes) {
            found if found == expected => Ok(bytes),
            found => Err(OciError::Changed { what: what.to_owned(), expected, found }),
        }
    }

    /// Writes a blob that the registry does not have yet.
    fn upload(&self, bytes: &[u8]) -> Result<(), OciError> {
        let digest = Digest::of(bytes);
        let url = self.client.url(&format!("blobs/{digest}"));
        let head = Call { method: "HEAD", ..Call::get(url) };
        if self.client.send(&head)?.status().as_u16() == 200 {
            return Ok(());
        }
        let url = self.client.url("blobs/uploads/");
        let begin = Call { method: "POST", body: Some(&[]), ..Call::get(url) };
        let begun = self.client.expect(&begin)?;
        let place = self.client.location(&begin.url, begun.headers())?;
        let joint = if place.contains('?') { '&' } else { '?' };
        let headers = [("content-type", "application/octet-stream")];
        let put = Call {
            method: "PUT",
            url: format!("{place}{joint}digest={digest}"),
            headers: &headers,
            body: Some(bytes),
        };
        self.client.expect(&put).map(drop)
    }

    fn put(&self, tag: &str, manifest: &Manifest) -> Result<Digest, OciError> {
        let bytes = written(manifest)?;
        let headers = [("content-type", MANIFEST)];
        let put = Call {
            method: "PUT",
            url: self.client.url(&format!("manifests/{tag}")),
            headers: &headers,
            body: Some(&bytes),
        };
        self.client.expect(&put)?;
        Ok(Digest::of(&bytes))
    }
}

fn empty() -> Manifest {
    Manifest {
        schema_version: 2,
        media_type: Some(MANIFEST.to_owned()),
        artifact_type: None,
        config: Descriptor::of(EMPTY.0, EMPTY.1),
        layers: Vec::new(),
        subject: None,
        annotations: None,
    }
}

fn of_one(name: &str, value: &str) -> Annotations {
    BTreeMap::from([(name.to_owned(), value.to_owned())])
}

/// The tag of what is attached to a manifest.
fn tag_of(subject: Digest, end: &str) -> String {
    format!("{}.{end}", subject.to_string().replace(':', "-"))
}

/// `None` where the registry has no such thing.
fn found<T>(result: Result<T, OciError>) -> Result<Option<T>, OciError> {
    match result {
        Err(OciError::NotFound { .. }) => Ok(None),
        other => other.map(Some),
    }
}

fn parse<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, OciError> {
    serde_json::from_slice(bytes).map_err(|error| OciError::malformed(what, error))
}

fn written(document: &impl Serialize) -> Result<Vec<u8>, OciError> {
    serde_json::to_vec(document).map_err(|error| OciError::malformed("the document", error))
}
