//! A provider that was found: it is shown, taken into the plugins directory, and bound.

use clap::Args;
use jiff::Timestamp;
use semver::Version;
use serde::Serialize;
use serde_json::json;

use super::call::{described, in_words};
use super::place::{NewPlugin, Origin, Place};
use super::trial;
use super::trusting::Proof;
use crate::answer::Answer;
use crate::args::CompanyArgs;
use crate::argument::{confirm, object, without_nulls};
use crate::output::{line, say};
use crate::session::Session;
use crate::texts::escape;
use crate::{CliError, Result};
use memhost_core::{BindingView, GrantsView, PluginView};
use memhost_oci::Sbom;
use memhost_sandbox::Inspection;
use memhost_types::{Digest, Grants};

/// Whether and how a provider is bound after it was taken.
#[derive(Debug, Args)]
pub(super) struct BindArgs {
    /// Also create this binding to the provider; one that is there stays.
    #[arg(long, value_name = "KEY")]
    bind: Option<String>,
    /// With --bind: provider configuration, a JSON object, or @FILE.
    #[arg(long, value_name = "JSON", requires = "bind")]
    config: Option<String>,
    /// Grant every requested permission.
    #[arg(long, requires = "bind")]
    everything: bool,
    /// Assign the binding to the whole company.
    #[arg(long, requires = "bind")]
    default: bool,
    /// Do it without asking.
    #[arg(long)]
    pub(super) yes: bool,
    #[command(flatten)]
    company: CompanyArgs,
}

/// A provider that may be taken.
pub(super) struct Offer {
    pub(super) component: Vec<u8>,
    pub(super) proof: Proof,
    /// Its reference without a digest, or the directory of the package.
    pub(super) from: String,
    /// The digest of its manifest. `None`: it comes from a package.
    pub(super) manifest: Option<Digest>,
    pub(super) is_pinned: bool,
    /// The version that its tag says. `None`: it has no tag that is one.
    pub(super) version: Option<Version>,
    pub(super) sbom: Option<Sbom>,
}

/// What was done, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Taken {
    provider: String,
    version: String,
    pub(super) digest: Digest,
    from: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    manifest: Option<Digest>,
    signed_by: String,
    directory: std::path::PathBuf,
    /// Whether it was there already.
    was_there: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    binding: Option<String>,
}

impl BindArgs {
    /// The host, for the company if the provider is to be bound.
    pub(super) async fn open(&self) -> Result<Session> {
        match self.bind {
            Some(_) => self.company.open().await,
            None => self.company.host.open().await,
        }
    }

    /// Binds a provider that the host has.
    async fn bind(&self, session: &Session, provider: &str) -> Result<Option<String>> {
        let Some(key) = &self.bind else { return Ok(None) };
        let path = session.path(&format!("bindings/{}", escape(key)));
        let made = session.may_make(&session.company).await?;
        match session.host.get::<BindingView>(&path).await {
            Ok(found) => {
                let present = found.read()?.binding.provider_key;
                if present.as_str() != provider {
                    let message = format!("`{key}` is a binding to {present}; give another key");
                    return Err(CliError::input("--bind", message));
                }
                if self.config.is_some() || self.default {
                    say(&format!(
                        "the binding {key} is there and stays as it is; change it with `memhost \
                         binding update` and `assign`"
                    ))?;
                }
            }
            Err(CliError::Problem { status: 404, .. }) => {
                let body = without_nulls(json!({
                    "key": key,
                    "providerKey": provider,
                    "config": object("--config", self.config.as_deref())?.unwrap_or_default(),
                    "default": self.default,
                }));
                let _: Answer<BindingView> = session.post("bindings", &body).await?;
                made.say()?;
            }
            Err(error) => return Err(error),
        }
        if self.everything {
            let path = format!("{path}/grants");
            let before: GrantsView = session.host.get(&path).await?.read()?;
            let asked: Vec<_> = before.asked.into_iter().map(|asked| asked.request).collect();
            let _: Answer<GrantsView> = session.host.put(&path, &Grants::all_of(&asked)).await?;
        }
        Ok(Some(key.clone()))
    }
}

impl Offer {
    /// Shows the provider, asks, takes it and binds it.
    pub(super) async fn take(self, place: &Place, args: &BindArgs) -> Result<()> {
        let mut taken = self.install(place, args.yes, None).await?;
        taken.binding = args.bind(&place.session, &taken.provider).await?;
        let next = match (&taken.binding, args.everything) {
            (None, _) => format!("memhost binding create KEY --provider {}", taken.provider),
            (Some(key), false) => format!("memhost binding grant {key}"),
            (Some(key), true) => format!("memhost search --binding {key} TEXT"),
        };
        let human = || match &taken.binding {
            Some(key) => format!("bound it as {key}; next: {next}"),
            None => format!("next: {next}"),
        };
        line(&place.session.format.tell(&taken, "", human)?)
    }

    /// Shows the provider, asks, and takes it. It must be the provider of this key, if one is
    /// expected.
    pub(super) async fn install(
        self,
        place: &Place,
        yes: bool,
        expected: Option<&str>,
    ) -> Result<Taken> {
        let digest = Digest::of(&self.component);
        let inspection = match place.has(digest) {
            Some(present) => present.inspection.clone(),
            None => self.inspect().await?,
        };
        let description = &inspection.description;
        self.check_version(&description.version)?;
        let key = description.provider_key.as_str();
        if let Some(expected) = expected.filter(|expected| *expected != key) {
            let message = format!(
                "has the provider `{key}` now, and `{expected}` was taken from there; ask who \
                 publishes it, or take it with `memhost plugin pull`"
            );
            return Err(CliError::input(self.from, message));
        }
        let taken = Taken {
            provider: description.provider_key.to_string(),
            version: description.version.to_string(),
            digest,
            from: self.from.clone(),
            manifest: self.manifest,
            signed_by: self.proof.shown(),
            directory: place.view.directory.clone(),
            was_there: place.has(digest).is_some(),
            binding: None,
        };
        say(&self.shown(&inspection, &place.view))?;
        let (provider, version) = (&taken.provider, &taken.version);
        let directory = taken.directory.display().to_string();
        if taken.was_there {
            say(&format!("{provider} {version} is in {directory} already"))?;
            return Ok(taken);
        }
        if expected.is_none()
            && let Some(other) = self.other_publisher(place, provider)?
        {
            say(&other)?;
            if yes {
                let message = format!("{other}; run it again without --yes to decide");
                return Err(CliError::input(self.from, message));
            }
        }
        confirm(yes, &format!("Take {provider} {version} into {directory}?"))?;
        let (minisign_key, cosign_key) = self.proof.keys();
        let signature = match &self.proof {
            Proof::Minisign { signature, .. } => Some((".wasm.minisig", signature.clone())),
            Proof::Cosign { proof, .. } => Some((".wasm.cosign", proof.written())),
            Proof::No => None,
        };
        let origin = Origin {
            provider: provider.clone(),
            version: description.version.clone(),
            digest,
            from: self.from,
            manifest: self.manifest,
            is_pinned: self.is_pinned,
            minisign_key,
            cosign_key,
            taken_at: Timestamp::now(),
        };
        let sbom = self.sbom.map(|sbom| sbom.bytes);
        place.put(&NewPlugin { origin, component: self.component, signature, sbom }).await?;
        // Said before it is bound, which can fail.
        say(&format!("took {provider} {version} into {directory}"))?;
        Ok(taken)
    }

    /// Who else has published the build of this provider that was taken last. Its bindings would
    /// follow to this one.
    fn other_publisher(&self, place: &Place, provider: &str) -> Result<Option<String>> {
        let all = place.origins()?;
        let Some((_, last)) = all.into_iter().find(|(_, origin)| origin.provider == provider)
        else {
            return Ok(None);
        };
        let (minisign, cosign) = self.proof.keys();
        let is_same = match (&last.minisign_key, &last.cosign_key) {
            (None, None) => minisign.is_none() && cosign.is_none() && last.from == self.from,
            (known, other) => {
                known.is_some() && *known == minisign || other.is_some() && *other == cosign
            }
        };
        let signer = last.minisign_key.or(last.cosign_key);
        let signer = signer.map_or("nobody".to_owned(), |key| key.lines().collect());
        Ok((!is_same).then(|| {
            format!(
                "{provider} {} was taken from {} and signed by {signer}: this one is another \
                 publisher's, and bindings follow the newest version",
                last.version, last.from
            )
        }))
    }

    /// A registry could send an old build, which its author has signed, for a new version.
    fn check_version(&self, version: &Version) -> Result<()> {
        match &self.version {
            Some(tag) if tag != version => Err(CliError::Failed(format!(
                "{} is version {version}, and its tag says {tag}; ask who publishes it, or name \
                 its digest in place of the tag",
                self.from
            ))),
            _ => Ok(()),
        }
    }

    async fn inspect(&self) -> Result<Inspection> {
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("plugin.wasm");
        std::fs::write(&file, &self.component)?;
        match trial::inspect(&file).await {
            Ok(component) => Ok(component.inspection().clone()),
            // The file is one of ours.
            Err(CliError::Input { message, .. }) => Err(CliError::input(&*self.from, message)),
            Err(error) => Err(error),
        }
    }

    /// What it is, what it requests, whose it is, and what is new compared to the installed one.
    fn shown(&self, inspection: &Inspection, view: &PluginView) -> String {
        let mut lines = vec![described(inspection)];
        // A registry chooses some of these texts, and must not add a line.
        let mut say = |label: &str, text: String| {
            lines.push(format!("{label:<12} {}", text.replace(['\n', '\r'], " ")));
        };
        match self.manifest {
            Some(manifest) => say("from", format!("{}@{manifest}", self.from)),
            None => say("from", self.from.clone()),
        }
        say("signed by", self.proof.shown());
        say(
            "sbom",
            match &self.sbom {
                Some(sbom) => {
                    format!("{}, {} bytes, not signed", sbom.media_type, sbom.bytes.len())
                }
                None => "none".to_owned(),
            },
        );
        let new = &inspection.description;
        let of_it = view.admitted.iter().map(|plugin| &plugin.inspection);
        let before = of_it
            .filter(|other| other.description.provider_key == new.provider_key)
            .filter(|other| other.digest != inspection.digest)
            .max_by(|a, b| a.description.version.cmp(&b.description.version));
        if let Some(before) = before {
            let before = &before.description;
            say("installed", before.version.to_string());
            let is_known = |asked: &&_| !before.permissions.contains(asked);
            for more in new.permissions.iter().filter(is_known) {
                let (kind, detail) = in_words(&more.permission);
                say("asks more", format!("{kind} {detail}: {}", more.reason));
            }
        }
        lines.join("\n")
    }
}
