//! `memhost bridge`: imports and exports the memory of other systems. A second program,
//! `memhost-bridge`, reads and writes their databases.

mod events;
mod export;
mod import;
mod item;
mod memori;
mod memsearch;
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
    /// Import a database that the library Memori keeps.
    #[command(subcommand)]
    Memori(MemoriCommand),
    /// Import or export Markdown journals of memsearch, such as `.memsearch/memory`.
    #[command(subcommand)]
    Memsearch(MemsearchCommand),
}

#[derive(Debug, Subcommand)]
pub(super) enum ClaudeMemCommand {
    /// Import observations, summaries and sessions; records that exist stay as they are.
    Import(ImportArgs),
    /// Write records into a new database that claude-mem opens.
    Export(ExportArgs),
}

#[derive(Debug, Subcommand)]
pub(super) enum MemoriCommand {
    /// Import facts, relations and summaries; records that exist stay as they are.
    Import(ImportArgs),
}

#[derive(Debug, Subcommand)]
pub(super) enum MemsearchCommand {
    /// Import the entries of a directory or file; records that exist stay as they are.
    Import(JournalsImportArgs),
    /// Write records as journals into a new directory, which memsearch can index.
    Export(JournalsArgs),
}

#[derive(Debug, Args)]
pub(super) struct JournalsArgs {
    /// The directory of journals; an export creates it.
    directory: PathBuf,
    #[command(flatten)]
    scope: ScopeArgs,
}

#[derive(Debug, Args)]
pub(super) struct JournalsImportArgs {
    #[command(flatten)]
    journals: JournalsArgs,
    /// Replace records that entries name by their ids and that say something else.
    #[arg(long)]
    replace: bool,
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
    match command {
        BridgeCommand::ClaudeMem(ClaudeMemCommand::Import(args)) => import::import(args).await,
        BridgeCommand::ClaudeMem(ClaudeMemCommand::Export(args)) => export::export(args).await,
        BridgeCommand::Memori(MemoriCommand::Import(args)) => memori::import(args).await,
        BridgeCommand::Memsearch(MemsearchCommand::Import(args)) => memsearch::import(args).await,
        BridgeCommand::Memsearch(MemsearchCommand::Export(args)) => memsearch::export(args).await,
    }
}
