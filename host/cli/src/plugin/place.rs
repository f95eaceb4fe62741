//! Where the files of a host's providers are: a plugin is taken by writing it there, and removed by
//! deleting it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::output::say;
use crate::session::Session;
use crate::{Backend, CliError, Result};
use memhost_core::plugins::PluginSource;
use memhost_core::{AdmittedPlugin, PluginView};
use memhost_files::durable;
use memhost_types::Digest;
use semver::Version;

/// How long a host may take to see a file, and to compile it.
const SEEN_WITHIN: Duration = Duration::from_secs(20);
const ADMITTED_WITHIN: Duration = Duration::from_secs(330);
const AGAIN: Duration = Duration::from_millis(200);
/// The end of the file that says where a provider came from, and its largest size in bytes.
const ORIGIN: &str = ".origin.json";
const MAX_ORIGIN: u64 = 64 << 10;

/// Where a provider came from. It is kept beside the component.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Origin {
    /// Provider key.
    pub(super) provider: String,
    pub(super) version: Version,
    /// The component's digest.
    pub(super) digest: Digest,
    /// Its reference without a digest, or the directory of the package.
    pub(super) from: String,
    /// The digest of its manifest; absent outside of registries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) manifest: Option<Digest>,
    /// Whether that digest was asked for, so that no other build may take its place.
    #[serde(default)]
    pub(super) is_pinned: bool,
    /// The key that signed it: a later version is taken if the same key signed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) minisign_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cosign_key: Option<String>,
    pub(super) taken_at: Timestamp,
}

/// A provider to be written.
pub(super) struct NewPlugin {
    pub(super) origin: Origin,
    pub(super) component: Vec<u8>,
    /// The end of the name of the file with its signature, and the text.
    pub(super) signature: Option<(&'static str, String)>,
    /// Its bill of materials.
    pub(super) sbom: Option<Vec<u8>>,
}

/// The plugins directory of a host.
pub(super) struct Place {
    pub(super) session: Session,
    pub(super) view: PluginView,
}

impl Place {
    /// That of a running host on this machine, or of a data directory.
    pub(super) async fn of(session: Session) -> Result<Self> {
        let view: PluginView = session.host.get("/control/v1/plugins").await?.read()?;
        let url = &session.connection.control_url;
        let shown = view.directory.display();
        if matches!(session.host, Backend::Http(_)) && !is_here(url) {
            let message = format!(
                "the host at {url} is on another machine, and a provider is a file in its plugins \
                 directory {shown}; run this command there, or copy the file there"
            );
            return Err(CliError::input("--url", message));
        }
        if !view.directory.is_dir() {
            let message = format!(
                "the host at {url} has its plugins directory at {shown}, which this machine or \
                 this user does not see; run this command where the host runs, as its user"
            );
            return Err(CliError::input("--url", message));
        }
        Ok(Self { session, view })
    }

    /// The build of this digest, if it is a file there.
    pub(super) fn has(&self, digest: Digest) -> Option<&AdmittedPlugin> {
        file_of(&self.view, digest)
    }

    /// Every provider that has its origin beside it, newest first. One whose origin is damaged is
    /// left out, and named.
    pub(super) fn origins(&self) -> Result<Vec<(PathBuf, Origin)>> {
        let directory = &self.view.directory;
        let failed = |error: std::io::Error| CliError::file(directory, &error);
        let mut all = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some(stem) = name.strip_suffix(ORIGIN) else { continue };
            let component = directory.join(format!("{stem}.wasm"));
            let is_small = std::fs::metadata(&path).is_ok_and(|found| found.len() <= MAX_ORIGIN);
            if !component.is_file() || !is_small {
                continue;
            }
            let read = std::fs::read(&path).and_then(|text| Ok(serde_json::from_slice(&text)?));
            match read {
                Ok(origin) => all.push((component, origin)),
                Err(error) => say(&format!(
                    "{} is left out, because it is damaged: {error}; take the provider again",
                    path.display()
                ))?,
            }
        }
        all.sort_by(|(_, a): &(PathBuf, Origin), (_, b)| {
            (&b.version, b.taken_at).cmp(&(&a.version, a.taken_at))
        });
        Ok(all)
    }

    /// Writes a provider, and waits until the host has admitted it. The component comes last, in
    /// one step. If anything fails, all of it is removed again.
    pub(super) async fn put(&self, new: &NewPlugin) -> Result<AdmittedPlugin> {
        let Origin { provider, version, digest, .. } = &new.origin;
        let stem = file_name(&format!("{provider}-{version}-{}", &digest.short()[..8]));
        let path = self.view.directory.join(format!("{stem}.wasm"));
        let origin = serde_json::to_vec_pretty(&new.origin).map_err(CliError::host)?;
        let mut written = Written::default();
        if let Some((end, signature)) = &new.signature {
            written.write(&beside(&path, end), signature.as_bytes())?;
        }
        if let Some(sbom) = &new.sbom {
            written.write(&beside(&path, ".sbom.json"), sbom)?;
        }
        written.write(&beside(&path, ORIGIN), &origin)?;
        written.write(&path, &new.component)?;
        let admitted = self.admitted(&path, *digest).await?;
        written.keep();
        Ok(admitted)
    }

    async fn admitted(&self, path: &Path, digest: Digest) -> Result<AdmittedPlugin> {
        let is_it = |other: &PathBuf| other.file_name() == path.file_name();
        let began = Instant::now();
        loop {
            let scan = self.session.host.post("/control/v1/plugins/scan", &json!({})).await?;
            let view: PluginView = scan.read()?;
            if let Some(admitted) = file_of(&view, digest) {
                return Ok(admitted.clone());
            }
            if let Some(refused) = view.refused.iter().find(|refused| is_it(&refused.path)) {
                return Err(CliError::Failed(format!(
                    "the host refused it, and it was removed again: {}",
                    refused.reason
                )));
            }
            let limit = match view.admitting.iter().any(is_it) {
                true => ADMITTED_WITHIN,
                false => SEEN_WITHIN,
            };
            if began.elapsed() > limit {
                return Err(CliError::Failed(format!(
                    "the host did not admit {} within {} s, and it was removed again; if the host \
                     is in a container or on another machine, run this command there",
                    path.display(),
                    limit.as_secs()
                )));
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Removes all builds of a provider that this program took, but these two: the newest, and the
    /// one that the host goes back to if the newest fails.
    pub(super) fn remove_all_but(&self, provider: &str, kept: [Digest; 2]) -> Result<()> {
        for (path, origin) in self.origins()? {
            if origin.provider == provider && !kept.contains(&origin.digest) {
                remove(&path).map_err(|error| CliError::file(&path, &error))?;
            }
        }
        Ok(())
    }
}

/// Removes a component, and then what is beside it.
fn remove(component: &Path) -> std::io::Result<()> {
    std::fs::remove_file(component)?;
    for end in [".wasm.minisig", ".wasm.cosign", ".sbom.json", ORIGIN] {
        drop(std::fs::remove_file(beside(component, end)));
    }
    Ok(())
}

fn file_of(view: &PluginView, digest: Digest) -> Option<&AdmittedPlugin> {
    view.admitted.iter().find(|plugin| {
        plugin.inspection.digest == digest && matches!(plugin.source, PluginSource::File(_))
    })
}

/// Whether a host is on this machine.
fn is_here(url: &str) -> bool {
    let authority = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = authority.split(['/', '?']).next().unwrap_or_default();
    url.starts_with("unix:") || memhost_oci::is_loopback(memhost_oci::hostname(authority))
}

/// `component` is `….wasm`.
fn beside(component: &Path, end: &str) -> PathBuf {
    let stem = component.file_stem().unwrap_or_default().to_string_lossy();
    component.with_file_name(format!("{stem}{end}"))
}

/// A text as the name of a file.
fn file_name(text: &str) -> String {
    let safe = |letter: char| letter.is_ascii_alphanumeric() || "-._+".contains(letter);
    let name: String = text.chars().map(|letter| if safe(letter) { letter } else { '_' }).collect();
    name.trim_start_matches('.').to_owned()
}

/// Files that are removed again unless they are kept.
#[derive(Default)]
struct Written(Vec<PathBuf>);

impl Written {
    fn write(&mut self, path: &Path, bytes: &[u8]) -> Result<()> {
        let failed = |error: std::io::Error| {
            let advice = match error.kind() {
                std::io::ErrorKind::PermissionDenied => {
                    "; run this command as the user of the host, such as with `sudo -u memhost`"
                }
                _ => "",
            };
            CliError::Failed(format!("{} cannot be written: {error}{advice}", path.display()))
        };
        let is_there = || std::fs::read(path).is_ok_and(|present| present == bytes);
        if is_there() {
            return Ok(());
        }
        let written = match path.extension().is_some_and(|end| end == "wasm") {
            // Another build of this name serves.
            true => durable::write_new_for_owner(path, bytes, 0o600),
            false => durable::write_for_owner(path, bytes, 0o600),
        };
        match written {
            Ok(()) => self.0.push(path.to_owned()),
            // The same command runs twice.
            Err(_) if is_there() => {}
            Err(error) => return Err(failed(error)),
        }
        Ok(())
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        // The component first: without it nothing else counts.
        for path in self.0.iter().rev() {
            drop(std::fs::remove_file(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_here_or_elsewhere() {
        for url in
            ["http://127.0.0.1:7600", "http://localhost", "http://[::1]:7600/", "unix:/run/m"]
        {
            assert!(is_here(url), "{url}");
        }
        for url in ["http://10.0.0.1:7600", "https://memory.example", "http://localhost.example"] {
            assert!(!is_here(url), "{url}");
        }
    }

    #[test]
    fn names_stay_in_the_directory() {
        assert_eq!(file_name("../a/b-1.0.0+x"), "_a_b-1.0.0+x");
        assert_eq!(file_name("facts-0.1.0-12345678"), "facts-0.1.0-12345678");
        let path = Path::new("/p/facts-0.1.0-12345678.wasm");
        let signature = beside(path, ".wasm.minisig");
        assert_eq!(signature, Path::new("/p/facts-0.1.0-12345678.wasm.minisig"));
    }

    #[test]
    fn what_is_not_kept_is_removed_and_what_was_there_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("old.wasm"), "old").unwrap();
        let mut written = Written::default();
        written.write(&path("new.origin.json"), b"{}").unwrap();
        assert!(written.write(&path("old.wasm"), b"new").is_err());
        drop(written);
        assert!(!path("new.origin.json").exists());
        assert_eq!(std::fs::read(path("old.wasm")).unwrap(), b"old");
    }
}
