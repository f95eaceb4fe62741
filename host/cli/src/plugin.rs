//! `memhost plugin`: the providers of a host, and tools for authors.

mod call;
mod dev;
mod language;
mod new;
mod replay;
mod run;
mod template;
pub(super) mod trial;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::args::{HostArgs, OutputArgs, Paging, WatchArgs};
use super::output::{details, line, table, text};
use super::page::{self, items};
use super::{CliError, check, config};
use memhost_core::plugins::{Signed, Trust, TrustError, TrustedKey};

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

pub(super) async fn run(command: PluginCommand) -> Result<(), CliError> {
    match command {
        PluginCommand::New(args) => new::run(&args),
        PluginCommand::Dev(args) => dev::run(*args).await,
        PluginCommand::Run(args) => run::run(args).await,
        PluginCommand::Replay(args) => replay::run(*args).await,
        PluginCommand::List { host, paging } => {
            let session = host.open().await?;
            page::list_of_host(&session, &paging, "/control/v1/plugins", "admitted", list).await
        }
        PluginCommand::Show { name, host, watch } => {
            let session = host.open().await?;
            let fetch = async || {
                let answer = session.host.get("/control/v1/plugins").await?;
                let all = items(&answer, "admitted").iter();
                let found: Vec<&Value> =
                    all.filter(|plugin| text(plugin, "/description/providerKey") == name).collect();
                match found.as_slice() {
                    [] => Err(page::missing("plugin", &name)),
                    [one] => Ok((*one).clone()),
                    several => Ok(json!({ "admitted": several })),
                }
            };
            page::watch(&session, &watch, "admitted", fetch, details).await
        }
        PluginCommand::Scan(host) => {
            let session = host.open().await?;
            let answer = session.host.post("/control/v1/plugins/scan", &json!({})).await?;
            session.show(&answer, "admitted", list)
        }
        PluginCommand::Inspect(args) => inspect(args).await,
        PluginCommand::Check(args) => check::run(args).await,
        PluginCommand::Trust { key, config } => match config::trust(&config, &key)? {
            true => line(&format!(
                "added {} to {}; restart the host to trust it",
                key.id(),
                config.display()
            )),
            false => line(&format!("{} is already trusted", key.id())),
        },
        PluginCommand::Verify { file, trusted_key } => {
            let trust = Trust { keys: trusted_key, requires_signature: true, digests: Vec::new() };
            match trust.check(&file, &read(&file)?) {
                Ok(Signed::By { key, comment }) => line(&format!("signed by {key}: {comment}")),
                Ok(Signed::No) | Err(TrustError::Unsigned { .. }) => Err(unsigned(&file)),
                Err(error) => Err(CliError::Failed(error.to_string())),
            }
        }
    }
}

fn read(file: &Path) -> Result<Vec<u8>, CliError> {
    std::fs::read(file).map_err(|error| CliError::file(file, &error))
}

fn unsigned(file: &Path) -> CliError {
    let name = file.display();
    CliError::Failed(format!("{name} has no signature; expected {name}.sig or {name}.minisig"))
}

fn list(answer: &Value) -> String {
    let row = |plugin: &Value| {
        let interfaces: Vec<String> = plugin["interfaces"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|name| text(name, ""))
            .collect();
        vec![
            text(plugin, "/description/providerKey"),
            text(plugin, "/description/version"),
            interfaces.join(", "),
            text(plugin, "/digest").chars().take(19).collect(),
            text(plugin, "/signed/key"),
            match plugin["source"]["path"].as_str() {
                Some(path) => path.to_owned(),
                None if plugin["source"]["kind"] == "kept" => {
                    "copy; the file was removed".to_owned()
                }
                None => "built in".to_owned(),
            },
        ]
    };
    let rows = items(answer, "admitted").iter().map(row).collect();
    let mut shown =
        table(&["provider", "version", "interfaces", "digest", "signed by", "file"], rows);
    for (at, file) in items(answer, "admitting").iter().enumerate() {
        let gap = if at == 0 { "\n\n" } else { "\n" };
        shown.push_str(&format!("{gap}being admitted: {}", text(file, "")));
    }
    for refused in items(answer, "refused") {
        shown.push_str(&format!(
            "\n\nrefused: {}\n  {}",
            text(refused, "/path"),
            text(refused, "/reason")
        ));
    }
    shown
}

async fn inspect(args: InspectArgs) -> Result<(), CliError> {
    let component = trial::inspect(&args.file).await?;
    let inspection = serde_json::to_value(component.inspection()).map_err(CliError::host)?;
    line(&args.output.format().render(&inspection, "", inspected)?)
}

fn inspected(inspection: &Value) -> String {
    let names = |field: &str| {
        let all: Vec<String> = items(inspection, field).iter().map(|name| text(name, "")).collect();
        if all.is_empty() { "none".to_owned() } else { all.join("\n             ") }
    };
    let description = &inspection["description"];
    let mut lines: Vec<String> = [
        (
            "provider",
            format!("{} {}", text(description, "/providerKey"), text(description, "/version")),
        ),
        ("summary", text(description, "/summary")),
        ("digest", text(inspection, "/digest")),
        ("size", format!("{} bytes", text(inspection, "/bytes"))),
        ("contract", text(inspection, "/contractVersion")),
        ("exports", names("exports")),
        ("imports", names("imports")),
    ]
    .iter()
    .map(|(label, value)| format!("{label:<12} {value}"))
    .collect();
    let asks = items(description, "permissions");
    if asks.is_empty() {
        lines.push("requests     none".to_owned());
    }
    for ask in asks {
        let kind = text(ask, "/permission/kind");
        let detail = text(ask, "/permission/detail");
        let optional = if ask["optional"] == true { " (optional)" } else { "" };
        lines.push(format!("requests     {kind} {detail}{optional}: {}", text(ask, "/reason")));
    }
    lines.join("\n")
}
