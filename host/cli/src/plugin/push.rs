//! `memhost plugin push`: an author's provider into a registry.

use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::trial;
use super::trusting::{RegistryArgs, asked};
use super::versions::version_of;
use crate::args::OutputArgs;
use crate::output::line;
use crate::{CliError, Result};
use memhost_core::plugins::{read_file, read_signature};
use memhost_oci::{Build, MAX_SBOM_BYTES, OciError, Reference, Registry, Sbom};

#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    /// Component file, `.wasm`. The signature beside it, which `minisign -S -m FILE` writes, is
    /// attached.
    file: PathBuf,
    /// Where to, oci://HOST/NAME:TAG [default tag: the provider's version].
    reference: Reference,
    /// Bill of materials to attach, CycloneDX or SPDX as JSON.
    #[arg(long, value_name = "FILE")]
    sbom: Option<PathBuf>,
    /// Overwrite a version that the registry has already.
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) async fn run(args: PushArgs) -> Result<()> {
    let options = args.registry.options()?;
    let file = &args.file;
    let wrong = |why: String| CliError::input(file.display().to_string(), why);
    let inspection = trial::inspect(file).await?.inspection().clone();
    let description = &inspection.description;
    if args.reference.digest.is_some() {
        return Err(CliError::input("REFERENCE", "a digest cannot be chosen; give a tag"));
    }
    let version = description.version.to_string();
    let tag = args.reference.tag.clone().unwrap_or_else(|| version.replace('+', "_"));
    if version_of(&tag).is_some_and(|named| named != description.version) {
        let why = format!("is version {version}; push it to that tag, or to one that is none");
        return Err(wrong(why));
    }
    let bytes = read_file(file).map_err(|error| wrong(error.to_string()))?;
    let bytes = bytes.ok_or_else(|| wrong("changes while it is read".to_owned()))?;
    let signature = read_signature(file).map(String::from_utf8).transpose();
    let signature = signature.map_err(|_| wrong("has a signature that is no text".to_owned()))?;
    let is_signed = signature.is_some();
    let sbom = args.sbom.as_deref().map(sbom).transpose()?;
    let has_sbom = sbom.is_some();
    let created = std::fs::metadata(file).and_then(|found| found.modified()).ok();
    let created = created.and_then(|at| Timestamp::try_from(at).ok()).unwrap_or_default();
    let (reference, overwrites) = (args.reference.at(&tag), args.overwrite);
    let named = reference.clone();
    let file_name = format!("{}.wasm", description.provider_key);
    let pushed = asked(move || {
        let description = &inspection.description;
        let build = Build {
            bytes: &bytes,
            file_name,
            version: description.version.to_string(),
            description: description.summary.clone(),
            exports: &inspection.exports,
            imports: &inspection.imports,
            created,
        };
        let registry = Registry::to_push(&reference, &options);
        let present = registry.digest_at(&tag)?;
        let digest = build.digest()?;
        // A version is one build for ever; a tag such as `latest` moves.
        let is_taken = present.is_some_and(|present| present != digest);
        if is_taken && !overwrites && version_of(&tag).is_some() {
            return Ok(None);
        }
        if present != Some(digest) {
            registry.push(&tag, &build)?;
        }
        if let Some(signature) = &signature {
            registry.attach_minisign(digest, signature)?;
        }
        if let Some(sbom) = &sbom {
            registry.attach_sbom(digest, sbom)?;
        }
        Ok::<_, OciError>(Some(digest))
    });
    let Some(digest) = pushed.await? else {
        let detail = format!(
            "{named} is another build already, and whoever has taken it would get two of one \
             version; raise the version, or give --overwrite"
        );
        return Err(CliError::Problem { status: 409, detail, operation: None, code: None });
    };
    let pinned = named.pinned(digest).to_string();
    let report = json!({
        "reference": named.to_string(), "manifest": digest, "isSigned": is_signed,
        "hasSbom": has_sbom,
    });
    let human = || {
        let signed = match is_signed {
            true => "its signature is attached".to_owned(),
            false => format!(
                "it is not signed: `minisign -S -m {}` and this command again sign it",
                file.display()
            ),
        };
        format!("pushed {pinned}\n{signed}\nnext: memhost plugin pull {pinned}")
    };
    line(&args.output.format().tell(&report, "", human)?)
}

/// A bill of materials, whose kind its text says.
fn sbom(file: &Path) -> Result<Sbom> {
    let wrong = |why: &str| CliError::input(file.display().to_string(), why);
    let size = std::fs::metadata(file).map_err(|error| CliError::file(file, &error))?.len();
    if size > MAX_SBOM_BYTES {
        return Err(wrong(&format!("is larger than {MAX_SBOM_BYTES} bytes; give a shorter one")));
    }
    let bytes = std::fs::read(file).map_err(|error| CliError::file(file, &error))?;
    let json: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let media_type = match (json["bomFormat"].as_str(), json["spdxVersion"].as_str()) {
        (Some("CycloneDX"), _) => "application/vnd.cyclonedx+json",
        (_, Some(_)) => "application/spdx+json",
        _ => return Err(wrong("is no JSON of CycloneDX or SPDX; `cargo cyclonedx` makes one")),
    };
    Ok(Sbom { media_type: media_type.to_owned(), bytes })
}
