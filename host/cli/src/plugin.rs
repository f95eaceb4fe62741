//! Providers: those of a host, and files that may become one.

mod call;
mod dev;
mod kit;
mod new;
mod replay;
mod run;
mod trial;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::args::{HostArgs, OutputArgs, Paging, WatchArgs};
use super::output::{details, line, table, text};
use super::page::{self, Asked, items};
use super::{CliError, check, config};
use memhost_core::plugins::{Plugins, Signed, SigningKey, Trust, TrustedKey, signature_path};
use memhost_sandbox::{Sandbox, SandboxOptions};

#[derive(Debug, Subcommand)]
pub(super) enum PluginCommand {
    /// Begin a provider: a project that builds, with tests, a README and the SDK of this host.
    New(new::NewArgs),
    /// Work on a provider: build it with every change, swap it into a host that runs, and show its log.
    Dev(Box<dev::DevArgs>),
    /// Call one build on a throwaway host: its answers, what it logs, and the computing and memory that it takes.
    Run(run::RunArgs),
    /// Ask another build what an operation asked, and show what is different. Takes a record that has the whole request.
    Replay(Box<replay::ReplayArgs>),
    /// Show the providers of a host, and the files that it keeps out.
    List {
        #[command(flatten)]
        host: HostArgs,
        #[command(flatten)]
        paging: Paging,
    },
    /// Show one provider of a host, every version of it.
    Show {
        /// Its key.
        name: String,
        #[command(flatten)]
        host: HostArgs,
        #[command(flatten)]
        watch: WatchArgs,
    },
    /// Look at the plugins directory of a host now instead of soon. A plugin is installed by copying its file there, and
    /// deleted by deleting it.
    Scan(HostArgs),
    /// Show what a file is and asks for. Needs no host.
    Inspect(InspectArgs),
    /// Try whether a provider keeps the rules of the contract: a line for each, with what was seen where one is broken. Needs
    /// no host. Ends with exit code 1 where a rule is broken, or where next to nothing could be tried.
    Check(check::CheckArgs),
    /// Make a signing key, in a file that only you can read. Prints the public key.
    Keygen {
        /// Where the key will be. An existing file is never overwritten.
        key: PathBuf,
    },
    /// Sign a plugin: writes the signature beside it.
    Sign {
        /// The plugin.
        file: PathBuf,
        /// The signing key, as `keygen` or `minisign -G -W` made it.
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// What the signature shall say beside, such as a version; it is signed, too.
        #[arg(long, default_value = "")]
        comment: String,
    },
    /// Believe somebody's signatures: writes the public key into a host's configuration file, from the next start on.
    Trust {
        /// The public key, as `keygen` printed it.
        key: TrustedKey,
        /// The configuration file; made where it is missing.
        #[arg(long, env = "MEMHOST_CONFIG", value_name = "FILE")]
        config: PathBuf,
    },
    /// Check the signature beside a plugin.
    Verify {
        /// The plugin.
        file: PathBuf,
        /// Whose signature it must be, a public key; may be given again.
        #[arg(long, required = true, value_name = "KEY")]
        trusted_key: Vec<TrustedKey>,
    },
}

#[derive(Debug, Args)]
pub(super) struct InspectArgs {
    /// A component, `.wasm`.
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
            let fetch =
                async |asked: Asked| session.host.get(&format!("/control/v1/plugins?{}", asked.query(&[]))).await;
            page::pages(session.format, &paging, "admitted", fetch, list).await
        }
        PluginCommand::Show { name, host, watch } => {
            let session = host.open().await?;
            let look = async || {
                let answer = session.host.get("/control/v1/plugins").await?;
                let all = items(&answer, "admitted").iter();
                let found: Vec<&Value> =
                    all.filter(|plugin| text(plugin, "/description/providerKey") == name).collect();
                match found.as_slice() {
                    [] => Err(page::missing("plugin", &name)),
                    [one] => session.format.render(one, "", details),
                    several => session.format.render(&json!({ "admitted": several }), "admitted", details),
                }
            };
            page::watched(&watch, look).await
        }
        PluginCommand::Scan(host) => {
            let session = host.open().await?;
            let answer = session.host.post("/control/v1/plugins/scan", &json!({})).await?;
            session.show(&answer, "admitted", list)
        }
        PluginCommand::Inspect(args) => inspect(args).await,
        PluginCommand::Check(args) => check::run(args).await,
        PluginCommand::Keygen { key } => {
            let made = SigningKey::generate().map_err(CliError::host)?;
            made.to_file(&key).map_err(|error| CliError::input("KEY", error))?;
            line(&made.public().to_string())
        }
        PluginCommand::Sign { file, key, comment } => {
            let key = SigningKey::from_file(&key).map_err(|error| CliError::input("--key", error))?;
            let bytes = read(&file)?;
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let comment = if comment.is_empty() { format!("file:{name}") } else { comment };
            let signature = key.sign(&bytes, &comment).map_err(|error| CliError::input("--comment", error))?;
            let path = signature_path(&file);
            std::fs::write(&path, signature).map_err(|error| CliError::input(path.display().to_string(), error))?;
            line(&format!("{} is signed by {}: {}", file.display(), key.public().id(), path.display()))
        }
        PluginCommand::Trust { key, config } => match config::trust(&config, &key)? {
            true => line(&format!("{} is trusted by {} from its next start on", key.id(), config.display())),
            false => line(&format!("{} is trusted already", key.id())),
        },
        PluginCommand::Verify { file, trusted_key } => {
            let trust = Trust { keys: trusted_key, requires_signature: true, digests: Vec::new() };
            match trust.check(&file, &read(&file)?) {
                Ok(Signed::By { key, comment }) => line(&format!("signed by {key}: {comment}")),
                Ok(Signed::No) => Err(CliError::Failed("it is not signed".to_owned())),
                Err(error) => Err(CliError::Failed(error.to_string())),
            }
        }
    }
}

fn read(file: &std::path::Path) -> Result<Vec<u8>, CliError> {
    std::fs::read(file).map_err(|error| CliError::input(file.display().to_string(), error))
}

fn list(answer: &Value) -> String {
    let row = |plugin: &Value| {
        let interfaces: Vec<String> =
            plugin["interfaces"].as_array().into_iter().flatten().map(|name| text(name, "")).collect();
        vec![
            text(plugin, "/description/providerKey"),
            text(plugin, "/description/version"),
            interfaces.join(", "),
            text(plugin, "/digest").chars().take(19).collect(),
            text(plugin, "/signed/key"),
            match plugin["source"]["path"].as_str() {
                Some(path) => path.to_owned(),
                None if plugin["source"]["kind"] == "kept" => "a copy, its file is gone".to_owned(),
                None => "built in".to_owned(),
            },
        ]
    };
    let rows = items(answer, "admitted").iter().map(row).collect();
    let mut shown = table(&["provider", "version", "also exports", "digest", "signed by", "from"], rows);
    for refused in items(answer, "refused") {
        shown.push_str(&format!("\n\nkept out: {}\n  {}", text(refused, "/path"), text(refused, "/reason")));
    }
    shown
}

async fn inspect(args: InspectArgs) -> Result<(), CliError> {
    let sandbox = Sandbox::new(SandboxOptions::default()).map_err(CliError::host)?;
    let component = Plugins::inspect(&sandbox, &args.file)
        .await
        .map_err(|error| CliError::input(args.file.display().to_string(), error))?;
    let inspection = serde_json::to_value(component.inspection()).map_err(CliError::host)?;
    line(&args.output.format().render(&inspection, "", inspected)?)
}

fn inspected(inspection: &Value) -> String {
    let names = |field: &str| {
        let all: Vec<String> = items(inspection, field).iter().map(|name| text(name, "")).collect();
        if all.is_empty() { "nothing".to_owned() } else { all.join("\n             ") }
    };
    let description = &inspection["description"];
    let mut lines: Vec<String> = [
        ("provider", format!("{} {}", text(description, "/providerKey"), text(description, "/version"))),
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
        lines.push("asks for     nothing".to_owned());
    }
    for ask in asks {
        let kind = text(ask, "/permission/kind");
        let detail = text(ask, "/permission/detail");
        let optional = if ask["optional"] == true { ", if it may" } else { "" };
        lines.push(format!("asks for     {kind} {detail}{optional}: {}", text(ask, "/reason")));
    }
    lines.join("\n")
}
