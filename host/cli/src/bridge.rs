//! Memory of other systems, in and out, through the same routes as every other command.

mod claude_mem;
mod events;
mod export;
mod item;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::CliError;
use super::args::ScopeArgs;

/// Which system.
#[derive(Debug, Subcommand)]
pub(super) enum BridgeCommand {
    /// claude-mem's store: a SQLite database, such as `~/.claude-mem/claude-mem.db`.
    #[command(subcommand, name = "claude-mem")]
    ClaudeMem(ClaudeMemCommand),
}

/// Which way.
#[derive(Debug, Subcommand)]
pub(super) enum ClaudeMemCommand {
    /// Take its observations, summaries and sessions in; what is there already stays as it is.
    Import(ImportArgs),
    /// Write records into a new database that claude-mem opens.
    Export(ExportArgs),
}

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// The database, which is only read; with --project all of it goes into one project.
    file: PathBuf,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// The database to make, which must not be there.
    file: PathBuf,
    /// Begin with a copy of this database.
    #[arg(long, value_name = "FILE")]
    copy_of: Option<PathBuf>,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(super) async fn run(command: BridgeCommand) -> Result<(), CliError> {
    let BridgeCommand::ClaudeMem(command) = command;
    match command {
        ClaudeMemCommand::Import(args) => claude_mem::import(args).await,
        ClaudeMemCommand::Export(args) => export::export(args).await,
    }
}

/// A database that will not do.
fn broken(file: &std::path::Path, error: impl std::fmt::Display) -> CliError {
    CliError::input(file.display().to_string(), error)
}
