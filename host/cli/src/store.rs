//! The store of a host: checking it, making it smaller, backing it up and bringing it back.

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::{Value, json};

use super::CliError;
use super::args::HostArgs;
use super::config::HostConfig;
use super::output::line;
use memhost_core::{Service, check_backup, restore_backup};
use memhost_store::SledStore;

#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    /// Check a data directory whose host is stopped, or a backup.
    Verify {
        /// The data directory of a host that is stopped.
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
        /// The data directory of a host that is stopped.
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

pub(super) async fn run(command: StoreCommand) -> Result<(), CliError> {
    match command {
        StoreCommand::Verify { backup: Some(backup), .. } => {
            let files = check_backup(&backup).map_err(CliError::host)?;
            SledStore::check_backup(&backup.join("store.backup")).map_err(CliError::host)?;
            line(&format!("the backup is whole: {files} files"))
        }
        StoreCommand::Verify { data_dir, config, .. } => {
            let data_dir = data_dir.unwrap_or_default();
            let config = HostConfig::read("--config", config.as_deref())?;
            let service = Service::open(config.options(&data_dir)?.service).await.map_err(CliError::host)?;
            let findings = service.verify_store().await.map_err(CliError::host)?;
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
            let session = host.open().await?;
            let made = session.host.post("/control/v1/backups", &body).await?;
            let key = if with_vault_key { "" } else { "; the vault key is not in it, keep that elsewhere" };
            let said = |made: &Value| {
                format!("{} keys and {} files are in {}{key}", made["keys"], made["files"], to.display())
            };
            session.show(&made, "", said)
        }
        StoreCommand::Restore { backup, data_dir } => {
            let files = restore_backup(&backup, &data_dir).map_err(CliError::host)?;
            let has_key = data_dir.join("vault.key").exists();
            let key = if has_key { "" } else { "; put the vault key there before you start a host on it" };
            line(&format!("{files} files are restored to {}{key}", data_dir.display()))
        }
    }
}
