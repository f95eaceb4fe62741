//! `memhost plugin new`: a project for a new provider.

use std::path::{Path, PathBuf};

use clap::Args;

use super::language::{self, Language};
use super::template::{self, Sdk, Template};
use crate::output::line;
use crate::{CliError, Result};

#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// Name of the provider and its package: a-z, 0-9 and -.
    #[arg(value_parser = name)]
    name: String,
    /// Directory to create [default: ./NAME].
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Begin with a provider whose records are at a service, over HTTP.
    #[arg(long)]
    http: bool,
    /// Language of the provider; README.md names the tools that it needs [default: rust].
    #[arg(long, value_enum, value_name = "LANG", conflicts_with_all = ["http", "ci", "sdk"])]
    lang: Option<Language>,
    /// Add a GitHub workflow that tests and builds it.
    #[arg(long)]
    ci: bool,
    /// Use the SDK in this directory instead of a copy of this host's SDK.
    #[arg(long, value_name = "DIR")]
    sdk: Option<PathBuf>,
}

/// Whether a name is valid as provider key and as package name.
fn name(text: &str) -> Result<String, String> {
    const RESERVED: [&str; 8] = [
        "memhost-sdk",
        "memhost-words",
        "test",
        "core",
        "std",
        "alloc",
        "proc-macro",
        "local-markdown",
    ];
    let is_fine = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let problem = match text.as_bytes() {
        _ if text.is_empty() || text.len() > 64 => "must have 1 to 64 characters",
        [first, ..] if !first.is_ascii_lowercase() => "must start with a letter a-z",
        bytes if !bytes.iter().all(|b| is_fine(*b)) => "must consist of a-z, 0-9 and -",
        bytes if bytes.ends_with(b"-") => "must not end with -",
        _ if RESERVED.contains(&text) => "is reserved",
        _ => return Ok(text.to_owned()),
    };
    Err(format!("{problem}; choose another name, such as `red-thread`"))
}

pub(super) fn run(args: &NewArgs) -> Result<()> {
    let place = args.dir.clone().unwrap_or_else(|| PathBuf::from(&args.name));
    let other = args
        .lang
        .map_or(Ok(None), |lang| language::project(&args.name, lang))
        .map_err(CliError::host)?;
    if let Some(files) = other {
        write(&place, &files).map_err(|message| CliError::input("--dir", message))?;
        return line(&format!(
            "created a working provider in {shown}, {count} files; README.md names the tools that \
             it needs\n\n  \
             cd {shown}\n  \
             ./build.sh\n  \
             memhost plugin check target/{name}.wasm",
            shown = place.display(),
            count = files.len(),
            name = args.name,
        ));
    }
    let sdk = args.sdk.as_deref().map_or(Ok(Sdk::Vendored), checked)?;
    let template = if args.http { Template::Http } else { Template::Storage };
    let files = template::project(&args.name, template, &sdk, args.ci).map_err(CliError::host)?;
    write(&place, &files).map_err(|message| CliError::input("--dir", message))?;
    let (shown, component) = (place.display(), template::underscored(&args.name));
    line(&format!(
        "created a working provider in {shown}, {count} files\n\n  \
         cd {shown}\n  \
         cargo test\n  \
         cargo wasm\n  \
         memhost plugin check target/wasm32-wasip2/release/{component}.wasm\n\n\
         then `memhost plugin dev` rebuilds it after every change and loads it into a host of its \
         own",
        count = files.len(),
    ))
}

/// The SDK's directory as an absolute path.
fn checked(sdk: &Path) -> Result<Sdk> {
    let wrong = |message: String| CliError::input("--sdk", format!("{}: {message}", sdk.display()));
    let path = std::fs::canonicalize(sdk).map_err(|error| wrong(error.to_string()))?;
    let is_it = std::fs::read_to_string(path.join("Cargo.toml"))
        .is_ok_and(|text| text.contains("\"memhost-sdk\""));
    if !is_it || !path.join("../wit").is_dir() {
        return Err(wrong(
            "is not the SDK; give the directory `sdk` of a checkout, next to `wit`".to_owned(),
        ));
    }
    Ok(Sdk::At(path.display().to_string()))
}

/// Writes all files or none; an existing directory is not changed.
fn write(place: &Path, files: &std::collections::BTreeMap<String, String>) -> Result<(), String> {
    let wrong = |error: std::io::Error| format!("{} cannot be created: {error}", place.display());
    let parent =
        place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if place.symlink_metadata().is_ok() {
        return Err(format!("{} exists; give another directory or remove it", place.display()));
    }
    std::fs::create_dir_all(parent).map_err(wrong)?;
    let made =
        tempfile::Builder::new().prefix(".memhost-new-").tempdir_in(parent).map_err(wrong)?;
    for (path, text) in files {
        let path = made.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(made.path())).map_err(wrong)?;
        std::fs::write(&path, text).map_err(wrong)?;
        #[cfg(unix)]
        if text.starts_with("#!") {
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
                .map_err(wrong)?;
        }
    }
    // A temporary directory is readable by its owner only; a project need not be.
    #[cfg(unix)]
    std::fs::set_permissions(made.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .map_err(wrong)?;
    std::fs::rename(made.path(), place).map_err(wrong)?;
    // It was renamed, so there is nothing to remove.
    let _ = made.keep();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_a_host_and_cargo_take() {
        for good in ["a", "red-thread", "notes2", &"n".repeat(64)] {
            assert_eq!(name(good).as_deref(), Ok(good));
        }
        for bad in [
            "",
            "2nd",
            "-a",
            "a-",
            "Red",
            "a_b",
            "a b",
            "é",
            "../a",
            "test",
            "local-markdown",
            &"n".repeat(65),
        ] {
            assert!(name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_directory_that_is_there_is_left_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let (place, file) = (directory.path().join("here"), directory.path().join("here/mine"));
        std::fs::create_dir(&place).unwrap();
        std::fs::write(&file, "mine").unwrap();
        let files = template::project("here", Template::Storage, &Sdk::Vendored, false).unwrap();
        assert!(write(&place, &files).unwrap_err().contains("here exists"));
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 1);
        let fresh = directory.path().join("below/fresh");
        write(&fresh, &files).unwrap();
        assert_eq!(std::fs::read_to_string(fresh.join("src/lib.rs")).unwrap(), files["src/lib.rs"]);
        let left: Vec<_> =
            std::fs::read_dir(directory.path().join("below")).unwrap().flatten().collect();
        assert_eq!(left.len(), 1, "nothing half-made is left: {left:?}");
    }
}
