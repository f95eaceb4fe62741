//! `memhost store` verifies, compacts, backs up and restores the store of a host; `memhost doctor`
//! checks the whole host and gives advice.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;

use super::args::{HostArgs, WatchArgs};
use super::backend::refuse_database;
use super::config::HostConfig;
use super::output::line;
use super::page::{self, Columns};
use super::texts::text;
use super::user_files::check_data;
use super::{CliError, Result};
use memhost_core::{
    BackupView, Check, Copied, CopyError, Health, OpenError, Service, StoreCopy, StoreCopyError,
    check_backup, restore_backup,
};
use memhost_http::api::Items;
use memhost_store::SledStore;
use memhost_types::counted;

#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    /// Verify the data directory of a stopped host, or a backup.
    Verify {
        /// Data directory of a stopped host.
        #[arg(long, value_name = "DIR", required_unless_present = "backup")]
        data_dir: Option<PathBuf>,
        /// The host's configuration file.
        #[arg(long, env = "MEMHOST_CONFIG", value_name = "FILE")]
        config: Option<PathBuf>,
        /// Use this backup instead.
        #[arg(long, value_name = "DIR", conflicts_with = "data_dir")]
        backup: Option<PathBuf>,
        /// Make a new store of everything that can be read, for a store that does not open. The
        /// damaged one is kept.
        #[arg(long, conflicts_with = "backup")]
        repair: bool,
    },
    /// Reclaim unused disk space of a stopped host.
    Compact {
        /// Data directory of a stopped host.
        #[arg(long, value_name = "DIR")]
        data_dir: PathBuf,
    },
    /// Back up a running host.
    Backup {
        #[command(flatten)]
        host: HostArgs,
        /// Directory to create on the host's machine.
        #[arg(long, value_name = "DIR", id = "directory")]
        to: PathBuf,
        /// Include the key that encrypts secrets; without it, store that key separately.
        #[arg(long)]
        with_vault_key: bool,
    },
    /// Copy everything from a data directory into a database, or back; no host may run on either.
    Copy {
        /// The data directory that is copied, or the database.
        #[arg(long, value_name = "DIR|URL", required_unless_present = "to")]
        from: Option<String>,
        /// The database that is filled, or an empty data directory. The side that is not named is
        /// the database in MEMHOST_STORE.
        #[arg(long, value_name = "DIR|URL")]
        to: Option<String>,
        /// Directory of providers' files of the hosts on the database: their shared_dir, or, with
        /// --to DIR, the data directory of a single host.
        #[arg(long, value_name = "DIR")]
        files: Option<PathBuf>,
        /// With --to DIR: every provider keeps its records in the database.
        #[arg(long, conflicts_with = "files")]
        without_files: bool,
        /// The host's key [default: host.key in the data directory].
        #[arg(long, value_name = "FILE")]
        host_key_file: Option<PathBuf>,
        /// The key that secrets are encrypted with [default: vault.key in the data directory].
        #[arg(long, value_name = "FILE")]
        vault_key_file: Option<PathBuf>,
    },
    /// Restore a backup to a new data directory.
    Restore {
        /// Backup directory.
        backup: PathBuf,
        /// Target directory, empty or missing.
        #[arg(long, value_name = "DIR")]
        data_dir: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    #[command(flatten)]
    host: HostArgs,
    #[command(flatten)]
    watch: WatchArgs,
}

pub(super) async fn run(command: StoreCommand) -> Result<()> {
    match command {
        StoreCommand::Verify { backup: Some(backup), .. } => {
            check_there("--backup", &backup)?;
            let files = check_backup(&backup).map_err(CliError::host)?;
            let findings =
                SledStore::check_backup(&backup.join("store.backup")).map_err(CliError::host)?;
            findings.iter().try_for_each(|finding| line(finding))?;
            match findings.len() {
                0 => line(&format!("the backup is complete: {}", counted(files, "file", "files"))),
                count => {
                    let found = counted(count, "problem", "problems");
                    Err(CliError::Failed(format!(
                        "every file is whole, and {found} found in the store; a host that starts \
                         from this backup makes sums again, and records operations without an end \
                         as interrupted: make another backup of a host whose `memhost doctor` \
                         finds nothing"
                    )))
                }
            }
        }
        StoreCommand::Verify { data_dir, config, repair, .. } => {
            let data_dir = data_dir.unwrap_or_default();
            check_data("--data-dir", &data_dir)?;
            if repair {
                self::repair(&data_dir)?;
            }
            let config = HostConfig::read("--config", config.as_deref())?;
            let mut options = config.options(&data_dir)?.service;
            refuse_database("--data-dir", &options)?;
            // Looking changes nothing: what is due waits for the next start.
            options.has_background = false;
            let service = Service::open(options).await.map_err(CliError::data_dir)?;
            let findings = service.control().verify_store().await.map_err(CliError::host)?;
            findings.iter().try_for_each(|finding| line(finding))?;
            match findings.len() {
                0 => line("no problems found"),
                count => {
                    let found = counted(count, "problem", "problems");
                    let next = match repair {
                        true => {
                            "they stay; restore a backup with `memhost store restore`".to_owned()
                        }
                        false => format!(
                            "`memhost store verify --repair --data-dir {}` makes the indexes anew \
                             from the log, says whether anything is lost, and keeps the present \
                             store beside the new one",
                            data_dir.display()
                        ),
                    };
                    Err(CliError::Failed(format!("{found} found; {next}")))
                }
            }
        }
        StoreCommand::Compact { data_dir } => {
            check_data("--data-dir", &data_dir)?;
            let (before, after) = SledStore::compact(&data_dir).map_err(CliError::data_dir)?;
            line(&format!("compacted from {} KiB to {} KiB", before >> 10, after >> 10))
        }
        StoreCommand::Backup { host, to, with_vault_key } => {
            let to = std::path::absolute(&to).map_err(|error| CliError::input("--to", error))?;
            let body = json!({ "directory": to, "withVaultKey": with_vault_key });
            let session = host.open().await?;
            let made = session.host.post("/control/v1/backups", &body).await?;
            let key = if with_vault_key {
                ""
            } else {
                "; it does not contain the vault key: store that key separately"
            };
            session.show(&made, |made: &BackupView| {
                let keys = counted(made.store.keys, "key", "keys");
                let files = counted(made.files, "file", "files");
                format!("backed up {keys} and {files} to {}{key}", to.display())
            })
        }
        StoreCommand::Copy { from, to, files, without_files, host_key_file, vault_key_file } => {
            let (data_dir, database, is_into_database) = ends(from, to)?;
            let copy = StoreCopy {
                data_dir,
                database,
                is_into_database,
                files,
                is_without_files: without_files,
                host_key_file,
                vault_key_file,
            };
            self::copy(&copy).await
        }
        StoreCommand::Restore { backup, data_dir } => {
            check_there("BACKUP", &backup)?;
            let files = restore_backup(&backup, &data_dir).map_err(CliError::host)?;
            let has_key = data_dir.join("vault.key").exists();
            let key =
                if has_key { "" } else { "; copy the vault key there before you start a host" };
            line(&format!(
                "restored {} to {}{key}; its host is quiet: it delivers nothing and asks no other \
                 system until you start it with `memhost serve --end-quiet`",
                counted(files, "file", "files"),
                data_dir.display()
            ))
        }
    }
}

/// The data directory and the database of a copy, and whether the database is filled.
fn ends(from: Option<String>, to: Option<String>) -> Result<(PathBuf, String, bool)> {
    let is_url = |text: &String| text.contains("://");
    let named = |flag: &str, url: Option<String>| match url {
        Some(url) => super::serve::database(flag, url),
        None => {
            let named = std::env::var("MEMHOST_STORE").ok().filter(|url| !url.is_empty());
            named.ok_or_else(|| {
                CliError::input(flag, "names no database; set MEMHOST_STORE to postgres://…")
            })
        }
    };
    match (from, to) {
        (Some(from), to) if !is_url(&from) && to.as_ref().is_none_or(is_url) => {
            Ok((from.into(), named("--to", to)?, true))
        }
        (from, Some(to)) if !is_url(&to) && from.as_ref().is_none_or(is_url) => {
            Ok((to.into(), named("--from", from)?, false))
        }
        _ => Err(CliError::input(
            "--from and --to",
            "name a data directory and a database, postgres://…, in either order",
        )),
    }
}

async fn copy(copy: &StoreCopy) -> Result<()> {
    let failed = |error| match error {
        StoreCopyError::Open(error @ OpenError::Database(_)) => super::serve::unusable(error),
        StoreCopyError::NoFiles => CliError::input("--files", error),
        StoreCopyError::Copy(
            error @ (CopyError::NoDirectory { .. }
            | CopyError::HasFiles { .. }
            | CopyError::NoFiles { .. }),
        ) => CliError::input("--files", error),
        error => CliError::Failed(error.to_string()),
    };
    let say = |said: &str| drop(line(said));
    let Copied { companies, rows, operations, values, files } =
        copy.run(say).await.map_err(failed)?;
    line(&format!(
        "copied and compared {}: {}, {}, {} of providers and {}",
        counted(companies, "company", "companies"),
        counted(rows, "row", "rows"),
        counted(operations, "operation", "operations"),
        counted(values, "value", "values"),
        counted(files, "file", "files"),
    ))?;
    let data_dir = copy.data_dir.display();
    match copy.is_into_database {
        true => {
            let shared =
                copy.files.as_ref().map(|files| format!(" --shared-dir {}", files.display()));
            line(&format!(
                "start hosts with MEMHOST_STORE{}, the operator token, and the key files host.key \
                 and vault.key of {data_dir}; copy the files of its plugins directory to that of \
                 one of them; start no host on {data_dir} any more",
                shared.map(|shared| format!(" and{shared}")).unwrap_or_default()
            ))
        }
        false => line(&format!(
            "start the host with `--data-dir {data_dir}` and the operator token; copy the files of \
             the plugins directories to its own; start no host on the database any more"
        )),
    }
}

/// Checks that a directory that is to be read is there.
fn check_there(argument: &str, directory: &Path) -> Result<()> {
    match directory.is_dir() {
        true => Ok(()),
        false => Err(CliError::input(
            argument,
            format!("{} is no directory; name a backup", directory.display()),
        )),
    }
}

fn repair(data_dir: &Path) -> Result<()> {
    let done = SledStore::repair(data_dir).map_err(CliError::data_dir)?;
    done.lost.iter().try_for_each(|lost| line(lost))?;
    let saved = |count| counted(count, "row", "rows");
    done.saved
        .iter()
        .try_for_each(|(table, count)| line(&format!("saved {} of `{table}`", saved(count))))?;
    let damaged = done.damaged.display();
    line(&format!(
        "the damaged store is in {damaged}; remove it when nothing is missing, or restore a backup"
    ))
}

/// Runs the health checks of a host.
pub(super) async fn doctor(args: DoctorArgs) -> Result<()> {
    let session = args.host.open().await?;
    let fetch = async || session.host.get("/control/v1/doctor").await;
    let human = |all: &Items<Check>| page::rows(&all.items, CHECKS);
    if args.watch.watch.is_some() {
        return page::watch_list(&session, &args.watch, fetch, human).await;
    }
    let answer = fetch().await?;
    session.show_list(&answer, human)?;
    let all = answer.read()?.items;
    match all.iter().filter(|check| check.health == Health::Error).count() {
        0 => session.say("no check failed"),
        failed => Err(CliError::Failed(format!("{failed} of {} checks failed", all.len()))),
    }
}

const CHECKS: &Columns<Check> = &[
    ("check", |check| text(&check.name)),
    ("status", |check| text(&check.health)),
    ("details", |check| check.found.clone()),
    ("advice", |check| check.advice.clone()),
];
