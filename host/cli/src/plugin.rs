//! `memhost plugin`: the providers of a host, and tools for authors.

mod call;
mod dev;
mod install;
mod language;
mod new;
mod offer;
mod place;
mod pull;
mod push;
mod replay;
mod run;
mod template;
pub(super) mod trial;
mod trusting;
mod update;
mod versions;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;

use super::answer::Answer;
use super::args::{HostArgs, OutputArgs, Paging, WatchArgs};
use super::output::line;
use super::page::{self, Columns};
use super::texts::text;
use super::{CliError, Result, check, config};
use memhost_core::plugins::{PluginSource, RefusedPlugin, Signed, Trust, TrustError, TrustedKey};
use memhost_core::{AdmittedPlugin, PluginView};

#[derive(Debug, Subcommand)]
pub(super) enum PluginCommand {
    /// Create a provider project with tests, a README and this host's SDK.
    New(new::NewArgs),
    /// Rebuild a provider on every change, load it into a host of its own or a running one, and
    /// show its log.
    Dev(Box<dev::DevArgs>),
    /// Call a build on a temporary host; show its answers, log, CPU time and memory.
    Run(run::RunArgs),
    /// Repeat a recorded operation on another build and show the difference. The record must hold
    /// the whole request.
    Replay(Box<replay::ReplayArgs>),
    /// List the providers of a host and the files that it refused.
    List {
        #[command(flatten)]
        host: HostArgs,
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a provider with all its versions.
    Show {
        /// Provider key.
        name: String,
        #[command(flatten)]
        host: HostArgs,
        #[command(flatten)]
        watch: WatchArgs,
    },
    /// Scan a host's plugins directory now. Copying a file there installs a plugin; deleting the
    /// file removes it.
    Scan(HostArgs),
    /// Show what a component file provides and requests. Needs no host.
    Inspect(InspectArgs),
    /// Run the conformance suite on a provider. Needs no host. Exits with code 1 if a rule is
    /// broken, or if almost nothing could be tested.
    Check(check::CheckArgs),
    /// Install a provider that came with this program, such as `facts`.
    Install(Box<install::InstallArgs>),
    /// Take a provider from an OCI registry: check its signature, show its version and its
    /// permission requests, and install it.
    Pull(Box<pull::PullArgs>),
    /// Push a provider with its signature to an OCI registry, in the layout of `wkg`.
    Push(Box<push::PushArgs>),
    /// List what `pull` and `install` took, with the newest versions.
    Outdated(Box<update::OutdatedArgs>),
    /// Take the newest versions of what `pull` and `install` took. A binding whose calls fail on
    /// one goes back to the version before.
    Update(Box<update::UpdateArgs>),
    /// Trust a public key: adds it to a host's configuration file, used from the next start.
    Trust {
        /// Public key, as `minisign -G` printed it.
        key: TrustedKey,
        /// Configuration file; created if missing.
        #[arg(long, env = "MEMHOST_CONFIG", value_name = "FILE")]
        config: PathBuf,
    },
    /// Verify the signature next to a plugin, which `minisign -S -m FILE` writes.
    Verify {
        /// Plugin file.
        file: PathBuf,
        /// Public key that must have signed it; repeatable.
        #[arg(long, required = true, value_name = "KEY")]
        trusted_key: Vec<TrustedKey>,
    },
}

#[derive(Debug, Args)]
pub(super) struct InspectArgs {
    /// Component file, `.wasm`.
    file: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) async fn run(command: PluginCommand) -> Result<()> {
    match command {
        PluginCommand::New(args) => new::run(&args),
        PluginCommand::Dev(args) => dev::run(*args).await,
        PluginCommand::Run(args) => run::run(args).await,
        PluginCommand::Replay(args) => replay::run(*args).await,
        PluginCommand::List { host, paging } => {
            let session = host.open().await?;
            page::list_of_host(&session, &paging, "/control/v1/plugins", list).await
        }
        PluginCommand::Show { name, host, watch } => {
            let session = host.open().await?;
            let fetch = async || {
                let all: Answer<PluginView> = session.host.get("/control/v1/plugins").await?;
                let mut found = Vec::new();
                for plugin in all.items() {
                    if plugin.read()?.inspection.description.provider_key.as_str() == name {
                        found.push(plugin.into_json());
                    }
                }
                match found.len() {
                    0 => Err(page::missing("plugin", &name)),
                    1 => Ok(Answer::new(found.remove(0))),
                    _ => Ok(Answer::<PluginView>::new(json!({ "admitted": found }))),
                }
            };
            page::watch_details(&session, &watch, fetch).await
        }
        PluginCommand::Scan(host) => {
            let session = host.open().await?;
            let answer = session.host.post("/control/v1/plugins/scan", &json!({})).await?;
            session.show_list(&answer, list)
        }
        PluginCommand::Inspect(args) => inspect(args).await,
        PluginCommand::Check(args) => check::run(args).await,
        PluginCommand::Install(args) => install::run(*args).await,
        PluginCommand::Pull(args) => pull::run(*args).await,
        PluginCommand::Push(args) => push::run(*args).await,
        PluginCommand::Outdated(args) => update::outdated(*args).await,
        PluginCommand::Update(args) => update::update(*args).await,
        PluginCommand::Trust { key, config } => match config::trust(&config, &key)? {
            true => line(&format!(
                "added {} to {}; restart the host to trust it",
                key.id(),
                config.display()
            )),
            false => line(&format!("{} is already trusted", key.id())),
        },
        PluginCommand::Verify { file, trusted_key } => {
            let trust = Trust { keys: trusted_key, requires_signature: true, ..Trust::default() };
            match trust.check(&file, &read(&file)?) {
                Ok(Signed::By { key, comment }) => line(&format!("signed by {key}: {comment}")),
                Ok(Signed::No) | Err(TrustError::Unsigned { .. }) => Err(unsigned(&file)),
                Err(error) => Err(CliError::Failed(error.to_string())),
            }
        }
    }
}

fn read(file: &Path) -> Result<Vec<u8>> {
    std::fs::read(file).map_err(|error| CliError::file(file, &error))
}

fn unsigned(file: &Path) -> CliError {
    let name = file.display();
    CliError::Failed(format!("{name} has no signature; expected {name}.sig or {name}.minisig"))
}

const PLUGINS: &Columns<AdmittedPlugin> = &[
    ("provider", |plugin| plugin.inspection.description.provider_key.to_string()),
    ("version", |plugin| plugin.inspection.description.version.to_string()),
    ("interfaces", |plugin| {
        plugin.inspection.interfaces.iter().map(text).collect::<Vec<_>>().join(", ")
    }),
    ("digest", |plugin| plugin.inspection.digest.to_string().chars().take(19).collect()),
    ("signed by", |plugin| match &plugin.signed {
        Signed::By { key, .. } => key.clone(),
        Signed::No => String::new(),
    }),
    ("file", |plugin| match &plugin.source {
        PluginSource::File(path) => text(path),
        PluginSource::Copy => "copy; the file was removed".to_owned(),
        PluginSource::Builtin => "built in".to_owned(),
    }),
];

fn list(answer: &PluginView) -> String {
    let mut shown = page::rows(&answer.admitted, PLUGINS);
    for (at, file) in answer.admitting.iter().enumerate() {
        let gap = if at == 0 { "\n\n" } else { "\n" };
        shown.push_str(&format!("{gap}being admitted: {}", file.display()));
    }
    for RefusedPlugin { path, reason } in &answer.refused {
        shown.push_str(&format!("\n\nrefused: {}\n  {reason}", path.display()));
    }
    shown
}

async fn inspect(args: InspectArgs) -> Result<()> {
    let component = trial::inspect(&args.file).await?;
    let inspection = component.inspection();
    line(&args.output.format().tell(inspection, "", || call::inspected(inspection))?)
}
