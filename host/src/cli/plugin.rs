//! Providers: those of a host, and files that may become one.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::Value;

use super::output::{line, table, text};
use super::{Backend, CliError, HostArgs, output};
use crate::plugins::Plugins;
use crate::sandbox::{Sandbox, SandboxOptions};

#[derive(Debug, Subcommand)]
pub(super) enum PluginCommand {
    /// Show the providers of a host, and the files that it keeps out.
    List(HostArgs),
    /// Show what a file is and asks for. Needs no host.
    Inspect(InspectArgs),
}

#[derive(Debug, Args)]
pub(super) struct InspectArgs {
    /// A component, `.wasm`.
    file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(command: PluginCommand) -> Result<(), CliError> {
    match command {
        PluginCommand::List(host) => list(host).await,
        PluginCommand::Inspect(args) => inspect(args).await,
    }
}

async fn list(host: HostArgs) -> Result<(), CliError> {
    let answer = Backend::open(&host).await?.get("/control/v1/plugins").await?;
    if host.json {
        return output::json(&answer);
    }
    let row = |plugin: &Value| {
        let interfaces: Vec<String> =
            plugin["interfaces"].as_array().into_iter().flatten().map(|name| text(name, "")).collect();
        vec![
            text(plugin, "/description/providerKey"),
            text(plugin, "/description/version"),
            interfaces.join(", "),
            text(plugin, "/digest").chars().take(19).collect(),
            match plugin["source"]["path"].as_str() {
                Some(path) => path.to_owned(),
                None if plugin["source"]["kind"] == "kept" => "a copy, its file is gone".to_owned(),
                None => "built in".to_owned(),
            },
        ]
    };
    let admitted = answer["admitted"].as_array().cloned().unwrap_or_default();
    table(&["provider", "version", "also exports", "digest", "from"], admitted.iter().map(row).collect())?;
    for refused in answer["refused"].as_array().into_iter().flatten() {
        line(&format!("\nkept out: {}\n  {}", text(refused, "/path"), text(refused, "/reason")))?;
    }
    Ok(())
}

async fn inspect(args: InspectArgs) -> Result<(), CliError> {
    let sandbox = Sandbox::new(SandboxOptions::default()).map_err(CliError::host)?;
    let component = Plugins::inspect(&sandbox, &args.file)
        .await
        .map_err(|error| CliError::input(args.file.display().to_string(), error))?;
    let inspection = serde_json::to_value(component.inspection()).map_err(CliError::host)?;
    if args.json {
        return output::json(&inspection);
    }
    let names = |field: &str| {
        let all: Vec<String> = inspection[field].as_array().into_iter().flatten().map(|name| text(name, "")).collect();
        if all.is_empty() { "nothing".to_owned() } else { all.join("\n             ") }
    };
    let description = &inspection["description"];
    for (label, value) in [
        ("provider", format!("{} {}", text(description, "/providerKey"), text(description, "/version"))),
        ("summary", text(description, "/summary")),
        ("digest", text(&inspection, "/digest")),
        ("size", format!("{} bytes", text(&inspection, "/bytes"))),
        ("contract", text(&inspection, "/contractVersion")),
        ("exports", names("exports")),
        ("imports", names("imports")),
    ] {
        line(&format!("{label:<12} {value}"))?;
    }
    let asks = description["permissions"].as_array().cloned().unwrap_or_default();
    if asks.is_empty() {
        return line("asks for     nothing");
    }
    for ask in asks {
        let kind = text(&ask, "/permission/kind");
        let detail = text(&ask, "/permission/detail");
        let optional = if ask["optional"] == true { ", if it may" } else { "" };
        line(&format!("asks for     {kind} {detail}{optional}: {}", text(&ask, "/reason")))?;
    }
    Ok(())
}
