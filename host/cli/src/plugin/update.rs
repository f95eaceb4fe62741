//! `memhost plugin outdated` and `update`: newer versions of what was taken.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::install;
use super::offer::Taken;
use super::place::{Origin, Place};
use super::pull::{offered, reference};
use super::trusting::{RegistryArgs, TrustArgs, asked};
use super::versions::{newest, version_of};
use crate::args::HostArgs;
use crate::output::line;
use crate::page::{self, Columns};
use crate::{CliError, Result};
use memhost_oci::{OciError, Options, Reference, Registry};
use memhost_types::Digest;

#[derive(Debug, Args)]
pub(crate) struct OutdatedArgs {
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    host: HostArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    /// Providers to update [default: all that were taken].
    name: Vec<String>,
    /// Do it without asking.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    host: HostArgs,
}

/// Where a newer build is.
#[derive(Debug, Clone)]
enum Newer {
    In(Reference),
    Package(PathBuf),
}

/// A provider that was taken, and whether there is a newer one.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    provider: String,
    version: String,
    /// The newest version, or the digest of a build at the same tag; absent: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    newest: Option<String>,
    from: String,
    /// Why nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(skip)]
    newer: Option<Newer>,
    #[serde(skip)]
    origin: Origin,
}

const COLUMNS: &Columns<Row> = &[
    ("provider", |row| row.provider.clone()),
    ("version", |row| row.version.clone()),
    ("newest", |row| match (&row.newest, &row.problem) {
        (Some(newest), _) => newest.clone(),
        (None, Some(_)) => "not known".to_owned(),
        (None, None) => "as installed".to_owned(),
    }),
    ("from", |row| row.from.clone()),
    ("problem", |row| row.problem.clone().unwrap_or_default()),
];

pub(super) async fn outdated(args: OutdatedArgs) -> Result<()> {
    let options = args.registry.options()?;
    let place = Place::of(args.host.open().await?).await?;
    let rows = rows(&place, &options).await?;
    let human = || match rows.as_slice() {
        [] => "no provider was taken with `memhost plugin pull` or `install`".to_owned(),
        rows => {
            let next = match rows.iter().any(|row| row.newer.is_some()) {
                true => "\n\nnext: memhost plugin update",
                false => "",
            };
            format!("{}{next}", page::rows(rows, COLUMNS))
        }
    };
    line(&place.session.format.tell(&json!({ "items": rows }), "items", human)?)
}

pub(super) async fn update(args: UpdateArgs) -> Result<()> {
    let options = args.trust.registry.options()?;
    let place = Place::of(args.host.open().await?).await?;
    let known: BTreeSet<String> =
        place.origins()?.into_iter().map(|(_, origin)| origin.provider).collect();
    if let Some(unknown) = args.name.iter().find(|name| !known.contains(*name)) {
        let detail = format!(
            "no provider `{unknown}` was taken with `memhost plugin pull` or `install`; `memhost \
             plugin outdated` lists those that were"
        );
        return Err(CliError::Problem { status: 404, detail, operation: None, code: None });
    }
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for row in rows(&place, &options).await? {
        if !args.name.is_empty() && !args.name.contains(&row.provider) {
            continue;
        }
        if let Some(problem) = &row.problem {
            failed.push(format!("{}: {problem}", row.provider));
        }
        let Some(newer) = row.newer.clone() else { continue };
        // One that fails leaves the others.
        match update_one(&row, newer, &args, &place, &options).await {
            Ok(taken) => done.push(taken),
            Err(error) => failed.push(format!("{}: {error}", row.provider)),
        }
    }
    let human = || match done.as_slice() {
        [] if failed.is_empty() => "nothing is newer".to_owned(),
        [] => "nothing was updated".to_owned(),
        _ => "bindings follow with their next call, if their range allows it; one that fails on \
              the new version goes back (`memhost binding show KEY`, `rejectedVersions`)"
            .to_owned(),
    };
    line(&place.session.format.tell(&json!({ "items": done }), "items", human)?)?;
    match failed.is_empty() {
        true => Ok(()),
        false => Err(CliError::Failed(failed.join("\n"))),
    }
}

async fn update_one(
    row: &Row,
    newer: Newer,
    args: &UpdateArgs,
    place: &Place,
    options: &Options,
) -> Result<Taken> {
    let mut trusted = args.trust.with(&place.view)?;
    // Who signed the version before is trusted for the next one.
    trusted.keys.extend(row.origin.minisign_key.as_ref().and_then(|key| key.parse().ok()));
    trusted.cosign.extend(row.origin.cosign_key.as_ref().and_then(|key| key.parse().ok()));
    let offer = match newer {
        Newer::In(reference) => offered(reference, options.clone(), &trusted).await?,
        Newer::Package(directory) => install::offered(&directory, &row.provider)?,
    };
    let taken = offer.install(place, args.yes, Some(&row.provider)).await?;
    place.remove_all_but(&row.provider, [taken.digest, row.origin.digest])?;
    Ok(taken)
}

/// The newest build of each provider that was taken.
async fn rows(place: &Place, options: &Options) -> Result<Vec<Row>> {
    let (mut seen, mut rows) = (BTreeSet::new(), Vec::new());
    for (_, origin) in place.origins()? {
        if !seen.insert(origin.provider.clone()) {
            continue;
        }
        let found = found(&origin, options).await;
        let (newer, problem) = match found {
            Ok(newer) => (newer, None),
            Err(error) => (None, Some(error.to_string())),
        };
        rows.push(Row {
            provider: origin.provider.clone(),
            version: origin.version.to_string(),
            newest: newer.as_ref().map(|(shown, _)| shown.clone()),
            from: origin.from.clone(),
            problem,
            newer: newer.map(|(_, newer)| newer),
            origin,
        });
    }
    Ok(rows)
}

/// What is newer, and how it is shown.
async fn found(origin: &Origin, options: &Options) -> Result<Option<(String, Newer)>> {
    let Some(reference) = reference(&origin.from)? else {
        let directory = Path::new(&origin.from);
        let offer = install::offered(directory, &origin.provider)?;
        let digest = Digest::of(&offer.component);
        let shown = format!("build {}", digest.short());
        return Ok((digest != origin.digest).then(|| (shown, Newer::Package(directory.to_owned()))));
    };
    if origin.is_pinned {
        return Ok(None);
    }
    let (options, origin) = (options.clone(), origin.clone());
    asked(move || newer_in(&reference, &origin, &options)).await
}

fn newer_in(
    reference: &Reference,
    origin: &Origin,
    options: &Options,
) -> Result<Option<(String, Newer)>, OciError> {
    let registry = Registry::to_pull(reference, options);
    let moving = reference.tag.as_deref().filter(|tag| version_of(tag).is_none());
    if let Some(tag) = moving {
        let now = registry.digest_at(tag)?;
        let other = now.filter(|now| Some(*now) != origin.manifest);
        let shown = |digest: Digest| format!("build {}", digest.short());
        return Ok(other.map(|digest| (shown(digest), Newer::In(reference.at(tag)))));
    }
    let tags = registry.tags()?;
    let newest = newest(&tags, Some(&origin.version));
    Ok(newest.map(|(version, tag)| (version.to_string(), Newer::In(reference.at(tag)))))
}
