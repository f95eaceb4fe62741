//! A company as a whole, and the store of a host.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use super::config::HostConfig;
use super::output::{escape, json as print_json, line};
use super::page::path;
use super::{Backend, CliError, CompanyArgs, HostArgs};
use crate::service::{Service, check_backup, restore_backup};
use crate::store::SledStore;

#[derive(Debug, Subcommand)]
pub(super) enum CompanyCommand {
    /// Show, or set, how long operations are kept.
    Retention(RetentionArgs),
    /// Write everything that a company has as lines of JSON.
    Export {
        #[command(flatten)]
        company: CompanyArgs,
        /// The file; standard output where absent.
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
    /// Take a company in that was exported elsewhere, all of it or nothing.
    Import {
        /// The export.
        file: PathBuf,
        #[command(flatten)]
        company: CompanyArgs,
    },
    /// Erase a company, at its providers and here. There is no way back.
    Erase {
        #[command(flatten)]
        company: CompanyArgs,
        /// The company's id once more.
        #[arg(long, value_name = "ID")]
        confirm: String,
    },
    /// Show what is left of an erased company.
    Tombstone(CompanyArgs),
}

#[derive(Debug, Args)]
pub(super) struct RetentionArgs {
    #[command(flatten)]
    company: CompanyArgs,
    /// Keep operations for so many days; 0 for no end.
    #[arg(long, value_name = "NUMBER")]
    days: Option<u32>,
    /// Keep at most so many operations; 0 for no end.
    #[arg(long, value_name = "NUMBER")]
    count: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    /// Check a data directory whose host is stopped, or a backup.
    Verify {
        /// The data directory.
        #[arg(long, value_name = "DIR", required_unless_present = "backup")]
        data_dir: Option<PathBuf>,
        /// The host's configuration file.
        #[arg(long, env = "MEMHOST_CONFIG", value_name = "FILE")]
        config: Option<PathBuf>,
        /// Instead: a backup.
        #[arg(long, value_name = "DIR", conflicts_with = "data_dir")]
        backup: Option<PathBuf>,
    },
    /// Give room back that a stopped host's store no longer needs.
    Compact {
        /// The data directory.
        #[arg(long, value_name = "DIR")]
        data_dir: PathBuf,
    },
    /// Make a backup of a host while it works.
    Backup {
        #[command(flatten)]
        host: HostArgs,
        /// A directory on the host's machine that is not there yet.
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
        /// With the key that secrets are encrypted with; without it, keep that key elsewhere.
        #[arg(long)]
        with_vault_key: bool,
    },
    /// Make a data directory from a backup.
    Restore {
        /// The backup.
        backup: PathBuf,
        /// A directory that is empty or not there.
        #[arg(long, value_name = "DIR")]
        data_dir: PathBuf,
    },
}

pub(super) async fn run(command: CompanyCommand) -> Result<(), CliError> {
    match command {
        CompanyCommand::Retention(args) => retention(args).await,
        CompanyCommand::Export { company, to } => {
            let lines = Backend::open(&company.host).await?.download(&path(&company, "export")).await?;
            match to {
                None => Ok(std::io::stdout().lock().write_all(&lines)?),
                Some(file) => std::fs::write(&file, lines)
                    .map_err(|error| CliError::input("--to", format!("{}: {error}", file.display()))),
            }
        }
        CompanyCommand::Import { file, company } => {
            let lines = std::fs::read_to_string(&file)
                .map_err(|error| CliError::input("FILE", format!("{}: {error}", file.display())))?;
            let host = Backend::open(&company.host).await?;
            let done = host.upload(&path(&company, "import"), lines).await?;
            match company.host.json {
                true => print_json(&done),
                false => line(&format!(
                    "{} rows, {} operations and {} records are in; set its secrets and make its tokens anew",
                    done["rows"], done["operations"], done["records"]
                )),
            }
        }
        CompanyCommand::Erase { company, confirm } => {
            let host = Backend::open(&company.host).await?;
            print_json(&host.post(&path(&company, "erase"), &json!({ "confirm": confirm })).await?)
        }
        CompanyCommand::Tombstone(company) => {
            let path = format!("/control/v1/tombstones/{}", escape(&company.company));
            print_json(&Backend::open(&company.host).await?.get(&path).await?)
        }
    }
}

async fn retention(args: RetentionArgs) -> Result<(), CliError> {
    let (host, path) = (Backend::open(&args.company.host).await?, path(&args.company, "retention"));
    let mut present = host.get(&path).await?;
    if args.days.is_some() || args.count.is_some() {
        let given = [("operationsMaxAgeDays", args.days.map(u64::from)), ("operationsMaxCount", args.count)];
        for (name, value) in given {
            match value {
                None => {}
                Some(0) => present[name] = serde_json::Value::Null,
                Some(value) => present[name] = value.into(),
            }
        }
        present = host.put(&path, &present).await?;
    }
    if args.company.host.json {
        return print_json(&present);
    }
    let kept = |name: &str, unit: &str| match present.get(name).and_then(serde_json::Value::as_u64) {
        Some(number) => format!("{number} {unit}"),
        None => "no end".to_owned(),
    };
    let (days, count) = (kept("operationsMaxAgeDays", "days"), kept("operationsMaxCount", "operations"));
    line(&format!("operations are kept: by age {days}, by count {count}"))
}

pub(super) async fn store(command: StoreCommand) -> Result<(), CliError> {
    match command {
        StoreCommand::Verify { backup: Some(backup), .. } => {
            let files = check_backup(&backup).map_err(CliError::host)?;
            SledStore::check_backup(&backup.join("store.backup")).map_err(CliError::host)?;
            line(&format!("the backup is whole: {files} files"))
        }
        StoreCommand::Verify { data_dir, config, .. } => {
            let data_dir = data_dir.unwrap_or_default();
            let config = HostConfig::read("--config", config.as_deref())?;
            let service = Service::open(config.options(&data_dir)?).await.map_err(CliError::host)?;
            let findings = service.verify_store().map_err(CliError::host)?;
            findings.iter().try_for_each(|finding| line(finding))?;
            match findings.len() {
                0 => line("the log and its indexes fit"),
                count => {
                    Err(CliError::Failed(format!("{count} findings; keep a copy of the directory before you go on")))
                }
            }
        }
        StoreCommand::Compact { data_dir } => {
            let (before, after) = SledStore::compact(&data_dir).map_err(CliError::host)?;
            line(&format!("{} KiB before, {} KiB now", before >> 10, after >> 10))
        }
        StoreCommand::Backup { host, to, with_vault_key } => {
            let to = std::path::absolute(&to).map_err(|error| CliError::input("--to", error))?;
            let body = json!({ "directory": to, "withVaultKey": with_vault_key });
            let made = Backend::open(&host).await?.post("/control/v1/backups", &body).await?;
            if host.json {
                return print_json(&made);
            }
            let key = if with_vault_key { "" } else { "; the vault key is not in it, keep that elsewhere" };
            line(&format!("{} keys and {} files are in {}{key}", made["keys"], made["files"], to.display()))
        }
        StoreCommand::Restore { backup, data_dir } => {
            let files = restore_backup(&backup, &data_dir).map_err(CliError::host)?;
            let has_key = data_dir.join("vault.key").exists();
            let key = if has_key { "" } else { "; put the vault key there before you start a host on it" };
            line(&format!("{files} files are restored to {}{key}", data_dir.display()))
        }
    }
}
