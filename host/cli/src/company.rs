//! `memhost company`: retention, export, import and erasure of a company.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::args::{CompanyArgs, HostArgs, Paging, WatchArgs};
use super::output::{details, escape, table, text};
use super::page::{self, items};
use super::session::Session;
use super::{CliError, argument};

#[derive(Debug, Subcommand)]
pub(super) enum CompanyCommand {
    /// List the companies of a host. The first write for a company creates it.
    List {
        #[command(flatten)]
        host: HostArgs,
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a company's retention, or its tombstone if it was erased.
    Show {
        #[command(flatten)]
        company: CompanyArgs,
        #[command(flatten)]
        watch: WatchArgs,
    },
    /// Set a company's retention.
    Update(UpdateArgs),
    /// Erase a company from this host and its providers. This cannot be undone.
    Delete {
        #[command(flatten)]
        company: CompanyArgs,
        /// The company ID again, to confirm.
        #[arg(long, value_name = "ID")]
        confirm: String,
    },
    /// Export all data of a company as JSON lines.
    Export {
        #[command(flatten)]
        company: CompanyArgs,
        /// Output file [default: standard output].
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
    /// Import an exported company, entirely or not at all.
    Import {
        /// The export file.
        file: PathBuf,
        #[command(flatten)]
        company: CompanyArgs,
    },
}

#[derive(Debug, Args)]
pub(super) struct UpdateArgs {
    #[command(flatten)]
    company: CompanyArgs,
    /// Keep operations for this many days; 0 keeps them forever.
    #[arg(long, value_name = "NUMBER")]
    days: Option<u32>,
    /// Keep at most this many operations; 0 keeps all.
    #[arg(long, value_name = "NUMBER")]
    count: Option<u64>,
}

pub(super) async fn run(command: CompanyCommand) -> Result<(), CliError> {
    match command {
        CompanyCommand::List { host, paging } => {
            let session = host.open().await?;
            let row = |company: &Value| vec![text(company, "")];
            let human = |answer: &Value| table(&["company"], items(answer, "items").iter().map(row).collect());
            page::list_of_host(&session, &paging, "/control/v1/companies", "items", human).await
        }
        CompanyCommand::Show { company, watch } => {
            let session = company.open().await?;
            page::watched(&watch, async || look(&session).await).await
        }
        CompanyCommand::Update(args) => update(args).await,
        CompanyCommand::Delete { company, confirm } => {
            let session = company.open().await?;
            let left = session.post("erase", &json!({ "confirm": confirm })).await?;
            session.show(&left, "", details)
        }
        CompanyCommand::Export { company, to } => {
            let session = company.open().await?;
            let lines = session.host.download(&session.path("export")).await?;
            match to {
                None => Ok(std::io::stdout().lock().write_all(&lines)?),
                Some(file) => {
                    memhost_files::private::write(&file, lines).map_err(|error| CliError::file(&file, &error))
                }
            }
        }
        CompanyCommand::Import { file, company } => {
            let lines = argument::input(Some(&file))?;
            let session = company.open().await?;
            let done = session.host.upload(&session.path("import"), lines).await?;
            session.show(&done, "", |done| {
                format!(
                    "imported {} rows, {} operations and {} records; now set the secrets and create tokens",
                    done["rows"], done["operations"], done["records"]
                )
            })
        }
    }
}

async fn look(session: &Session) -> Result<String, CliError> {
    match session.host.get(&format!("/control/v1/tombstones/{}", escape(&session.company))).await {
        Ok(left) => session.format.render(&left, "", details),
        // The company was not erased, or the caller may not read tombstones.
        Err(CliError::Problem { status: 403 | 404, .. }) => {
            session.format.render(&session.get("retention").await?, "", kept)
        }
        Err(error) => Err(error),
    }
}

async fn update(args: UpdateArgs) -> Result<(), CliError> {
    let session = args.company.open().await?;
    let mut present = session.get("retention").await?;
    if args.days.is_some() || args.count.is_some() {
        let given = [("operationsMaxAgeDays", args.days.map(u64::from)), ("operationsMaxCount", args.count)];
        for (name, value) in given {
            match value {
                None => {}
                Some(0) => present[name] = Value::Null,
                Some(value) => present[name] = value.into(),
            }
        }
        present = session.put("retention", &present).await?;
    }
    session.show(&present, "", kept)
}

fn kept(retention: &Value) -> String {
    let kept = |name: &str, unit: &str| match retention.get(name).and_then(Value::as_u64) {
        Some(number) => format!("{number} {unit}"),
        None => "unlimited".to_owned(),
    };
    let (days, count) = (kept("operationsMaxAgeDays", "days"), kept("operationsMaxCount", "operations"));
    format!("retention of operations: age {days}, count {count}")
}
