//! `memhost bridge`: imports and exports the memory of other systems. A second program, `memhost-bridge`, reads and writes
//! their databases.

mod events;
mod export;
mod import;
mod item;
mod program;
mod records;
mod row;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::CliError;
use super::args::ScopeArgs;

#[derive(Debug, Subcommand)]
pub(super) enum BridgeCommand {
    /// Import or export a claude-mem database, such as `~/.claude-mem/claude-mem.db`.
    #[command(subcommand, name = "claude-mem")]
    ClaudeMem(ClaudeMemCommand),
}

#[derive(Debug, Subcommand)]
pub(super) enum ClaudeMemCommand {
    /// Import observations, summaries and sessions; records that exist stay as they are.
    Import(ImportArgs),
    /// Write records into a new database that claude-mem opens.
    Export(ExportArgs),
}

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// The database, opened read-only; with --project all its records go into one project.
    file: PathBuf,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// The database to create; the file must not exist.
    file: PathBuf,
    /// Start from a copy of this database.
    #[arg(long, value_name = "FILE")]
    copy_of: Option<PathBuf>,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(super) async fn run(command: BridgeCommand) -> Result<(), CliError> {
    let BridgeCommand::ClaudeMem(command) = command;
    match command {
        ClaudeMemCommand::Import(args) => import::import(args).await,
        ClaudeMemCommand::Export(args) => export::export(args).await,
    }
}
