//! `memhost bridge`: imports and exports the memory of other systems. A second program,
//! `memhost-bridge`, reads and writes their databases.

mod export;
mod import;
mod item;
mod memori;
mod memsearch;
mod program;
mod records;
mod row;

use clap::Subcommand;

use self::export::ExportArgs;
use self::import::ImportArgs;
use self::memsearch::{JournalsArgs, JournalsImportArgs};
use super::Result;

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

pub(super) async fn run(command: BridgeCommand) -> Result<()> {
    match command {
        BridgeCommand::ClaudeMem(ClaudeMemCommand::Import(args)) => import::import(args).await,
        BridgeCommand::ClaudeMem(ClaudeMemCommand::Export(args)) => export::export(args).await,
        BridgeCommand::Memori(MemoriCommand::Import(args)) => memori::import(args).await,
        BridgeCommand::Memsearch(MemsearchCommand::Import(args)) => memsearch::import(args).await,
        BridgeCommand::Memsearch(MemsearchCommand::Export(args)) => memsearch::export(args).await,
    }
}
