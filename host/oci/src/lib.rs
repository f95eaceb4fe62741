//! Providers in OCI registries, in the layout that `wkg` writes: a component as the one layer of a
//! manifest. Signatures (minisign, cosign by key) and bills of materials are attached to it.
//!
//! It speaks the protocol itself, over the HTTP client that this program has anyway, because every
//! answer of a registry has a bound here: the known clients read manifests, tokens and errors of
//! any length. All calls block.

mod artifact;
mod client;
mod credentials;
mod error;
mod manifest;
mod reference;

pub use artifact::{Build, CosignSignature, MAX_SBOM_BYTES, Pulled, Registry, Sbom};
pub use client::Options;
pub use error::OciError;
pub use reference::{Reference, hostname, is_loopback};
