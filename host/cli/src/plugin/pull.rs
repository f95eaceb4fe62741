//! `memhost plugin pull`: a provider from a registry.

use clap::Args;

use super::offer::{BindArgs, Offer};
use super::place::Place;
use super::trusting::{Attached, Proof, TrustArgs, Trusted, asked};
use super::versions::{newest, version_of};
use crate::{CliError, Result};
use memhost_core::plugins::CosignProof;
use memhost_oci::{OciError, Options, Pulled, Reference, Registry, Sbom};
use memhost_sandbox::MAX_COMPONENT_BYTES;

#[derive(Debug, Args)]
pub(crate) struct PullArgs {
    /// The provider, oci://HOST/NAME:TAG. Without a tag: its newest version. With @DIGEST: that
    /// manifest only.
    reference: Reference,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    bind: BindArgs,
}

pub(super) async fn run(args: PullArgs) -> Result<()> {
    let options = args.trust.registry.options()?;
    let place = Place::of(args.bind.open().await?).await?;
    let trusted = args.trust.with(&place.view)?;
    offered(args.reference, options, &trusted).await?.take(&place, &args.bind).await
}

/// What a registry has, checked.
pub(super) async fn offered(
    reference: Reference,
    options: Options,
    trusted: &Trusted,
) -> Result<Offer> {
    let found = asked(move || fetch(reference, &options)).await?;
    let Found { reference, pulled, attached, sbom } = found;
    let is_pinned = reference.digest.is_some();
    let named = reference.pinned(pulled.digest).to_string();
    let proof = trusted.check(&named, &pulled.component, &attached)?;
    if let Proof::No = proof {
        eprintln!("warning: {named} is taken without a signature of a trusted key");
    }
    let version = reference.tag.as_deref().filter(|_| !is_pinned).and_then(version_of);
    let from = Reference { digest: None, ..reference }.to_string();
    let manifest = Some(pulled.digest);
    Ok(Offer { component: pulled.component, proof, from, manifest, is_pinned, version, sbom })
}

struct Found {
    reference: Reference,
    pulled: Pulled,
    attached: Attached,
    sbom: Option<Sbom>,
}

fn fetch(mut reference: Reference, options: &Options) -> Result<Found, OciError> {
    let registry = Registry::to_pull(&reference, options);
    if reference.tag.is_none() && reference.digest.is_none() {
        let tags = registry.tags()?;
        let tag = newest(&tags, None).map_or("latest", |(_, tag)| tag);
        reference = reference.at(tag);
    }
    let pulled = registry.pull(&reference, MAX_COMPONENT_BYTES)?;
    let manifest = pulled.digest;
    let cosign = registry.cosign(manifest)?.into_iter().map(|signature| CosignProof {
        manifest: pulled.manifest.clone(),
        payload: signature.payload,
        signature: signature.signature,
    });
    let attached = Attached { minisign: registry.minisign(manifest)?, cosign: cosign.collect() };
    let sbom = registry.sbom(manifest)?;
    Ok(Found { reference, pulled, attached, sbom })
}

/// The reference of what came from a registry.
pub(super) fn reference(from: &str) -> Result<Option<Reference>> {
    if !from.starts_with("oci://") {
        return Ok(None);
    }
    from.parse().map(Some).map_err(|error| CliError::input(from, error))
}
