//! `memhost plugin install`: a provider that came with the program.

use std::path::{Path, PathBuf};

use clap::Args;

use super::offer::{BindArgs, Offer};
use super::place::Place;
use super::trusting::Proof;
use crate::argument::did_you_mean;
use crate::{CliError, Result};
use memhost_core::plugins::{TrustedKey, read_file, read_signature, verify};
use memhost_oci::{MAX_SBOM_BYTES, Sbom};

/// Where a package has the components, from the directory of the program.
const OF_PACKAGE: &str = "../lib/memhost/plugins";
const KEY: &str = "minisign.pub";

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// Provider to install, such as `facts`.
    name: String,
    /// Directory of the components, their signatures and `minisign.pub` [default: that of the
    /// package that this program belongs to].
    #[arg(long, value_name = "DIR")]
    package_dir: Option<PathBuf>,
    #[command(flatten)]
    bind: BindArgs,
}

pub(super) async fn run(args: InstallArgs) -> Result<()> {
    let directory = match args.package_dir {
        // An update finds it from elsewhere, too.
        Some(directory) => std::path::absolute(&directory)?,
        None => of_package()?,
    };
    let offer = offered(&directory, &args.name)?;
    let place = Place::of(args.bind.open().await?).await?;
    offer.take(&place, &args.bind).await
}

fn of_package() -> Result<PathBuf> {
    let program = std::env::current_exe().and_then(|program| program.canonicalize())?;
    let directory = program.parent().unwrap_or(Path::new("/")).join(OF_PACKAGE);
    directory.canonicalize().map_err(|_| {
        let message = format!(
            "this program is from no package with providers: {} is not there; name their directory \
             with --package-dir, or take one from a registry with `memhost plugin pull oci://…`",
            directory.display()
        );
        CliError::input("NAME", message)
    })
}

/// A component of a package, whose own key must have signed it.
pub(super) fn offered(directory: &Path, name: &str) -> Result<Offer> {
    let all = names(directory)?;
    if !all.iter().any(|known| known == name) {
        let known = match all.as_slice() {
            [] => "it has none".to_owned(),
            all => format!("it has {}", all.join(", ")),
        };
        let near = did_you_mean(name, all.iter().map(String::as_str));
        let message = format!("the package has no provider `{name}`{near} ({known})");
        return Err(CliError::Problem {
            status: 404,
            detail: message,
            operation: None,
            code: None,
        });
    }
    let file = directory.join(format!("memhost_{}.wasm", name.replace('-', "_")));
    let shown = file.display();
    let wrong = |why: String| {
        CliError::Failed(format!("{shown} is not taken: {why}; install the package again"))
    };
    let key = directory.join(KEY);
    let key = std::fs::read_to_string(&key)
        .map_err(|error| wrong(format!("{}: {error}", key.display())))?;
    let key: TrustedKey = key.parse().map_err(|error| wrong(format!("{KEY}: {error}")))?;
    let component = read_file(&file).map_err(|error| wrong(error.to_string()))?;
    let component = component.ok_or_else(|| wrong("it changes while it is read".to_owned()))?;
    let signature = read_signature(&file).ok_or_else(|| wrong("it has no signature".to_owned()))?;
    let signature =
        String::from_utf8(signature).map_err(|_| wrong("its signature is no text".to_owned()))?;
    let verified =
        verify(&component, &signature, &[key]).map_err(|error| wrong(error.to_string()))?;
    Ok(Offer {
        component,
        proof: Proof::Minisign { key: verified.key, comment: verified.trusted_comment, signature },
        from: directory.display().to_string(),
        manifest: None,
        is_pinned: false,
        version: None,
        sbom: sbom(&file.with_extension("sbom.json")),
    })
}

fn names(directory: &Path) -> Result<Vec<String>> {
    let failed = |error: std::io::Error| CliError::file(directory, &error);
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        let name = name.strip_prefix("memhost_").and_then(|name| name.strip_suffix(".wasm"));
        all.extend(name.map(|name| name.replace('_', "-")));
    }
    all.sort();
    Ok(all)
}

fn sbom(file: &Path) -> Option<Sbom> {
    let size = std::fs::metadata(file).ok()?.len();
    let bytes = std::fs::read(file).ok().filter(|_| size <= MAX_SBOM_BYTES)?;
    Some(Sbom { media_type: "application/json".to_owned(), bytes })
}
