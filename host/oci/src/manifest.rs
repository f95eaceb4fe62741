//! The documents of a registry, as far as a provider has them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use memhost_types::Digest;

/// The media type of a manifest.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// The media type of a component, also that of its manifest as an artifact.
pub(crate) const COMPONENT: &str = "application/wasm";
/// The media type of what `wkg` says about a component.
pub(crate) const CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// The media type of a minisign signature, which is also the type of its artifact.
pub(crate) const MINISIGN: &str = "application/vnd.memhost.minisign.v1";
/// The media type of what cosign signs.
pub(crate) const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The annotation with cosign's signature.
pub(crate) const COSIGN_SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// The annotations that `wkg` writes.
pub(crate) const VERSION: &str = "org.opencontainers.image.version";
pub(crate) const DESCRIPTION: &str = "org.opencontainers.image.description";
pub(crate) const TITLE: &str = "org.opencontainers.image.title";
/// The media type and the content of a config that says nothing.
pub(crate) const EMPTY: (&str, &[u8]) = ("application/vnd.oci.empty.v1+json", b"{}");

pub(crate) type Annotations = BTreeMap<String, String>;

/// What a document says of another one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    pub(crate) media_type: String,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) artifact_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) annotations: Option<Annotations>,
}

impl Descriptor {
    pub(crate) fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest: Digest::of(bytes),
            size: bytes.len() as u64,
            artifact_type: None,
            annotations: None,
        }
    }
}

/// A manifest.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    pub(crate) schema_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) media_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) artifact_type: Option<String>,
    pub(crate) config: Descriptor,
    #[serde(default)]
    pub(crate) layers: Vec<Descriptor>,
    /// The manifest that this one is attached to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<Descriptor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) annotations: Option<Annotations>,
}

/// What `wkg` says about a component.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Config<'a> {
    pub(crate) created: jiff::Timestamp,
    pub(crate) author: Option<&'a str>,
    pub(crate) architecture: &'static str,
    pub(crate) os: &'static str,
    pub(crate) layer_digests: Vec<Digest>,
    pub(crate) component: World<'a>,
}

/// The world of a component.
#[derive(Debug, Serialize)]
pub(crate) struct World<'a> {
    pub(crate) exports: &'a [String],
    pub(crate) imports: &'a [String],
    pub(crate) target: Option<&'a str>,
}

/// What is attached to a manifest, as the registry lists it.
#[derive(Debug, Deserialize)]
pub(crate) struct Index {
    #[serde(default)]
    pub(crate) manifests: Vec<Descriptor>,
}

/// A page of tags.
#[derive(Debug, Deserialize)]
pub(crate) struct Tags {
    /// Null where there are none.
    pub(crate) tags: Option<Vec<String>>,
}
