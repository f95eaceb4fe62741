//! `memhost company`: creation, retention, export, import and erasure of a company.

use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::args::{CompanyArgs, HostArgs, Paging, WatchArgs};
use super::output::{details, escape, table, text};
use super::page::{self, items, query};
use super::session::Session;
use super::{CliError, argument};
use memhost_types::{counted, nearest};

mod lines;
use lines::{check_company, check_complete, requests, unscoped};

#[derive(Debug, Subcommand)]
pub(super) enum CompanyCommand {
    /// List the companies of a host.
    List {
        #[command(flatten)]
        host: HostArgs,
        #[command(flatten)]
        paging: Paging,
    },
    /// Create a company. Its first binding, token, secret or written record creates it, too.
    Create {
        #[command(flatten)]
        company: CompanyArgs,
    },
    /// Show a company's retention and how much the host keeps of it, or its tombstone if it was
    /// erased.
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
        /// Give up what this binding's provider has, where it cannot confirm that it has forgotten
        /// everything. The tombstone says so. Can be repeated.
        #[arg(long, value_name = "KEY")]
        abandon: Vec<String>,
    },
    /// Export all data of a company as JSON lines.
    Export {
        #[command(flatten)]
        company: CompanyArgs,
        /// Output file, which must not exist [default: standard output].
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
    /// Import an exported company, entirely or not at all.
    Import {
        /// The export file.
        file: PathBuf,
        /// Print the grants and limits that the file asks for, and accept them. Without this they
        /// are requests, and records wait until `memhost binding grant KEY` decides.
        #[arg(long)]
        accept_grants: bool,
        /// 'company': make records without a known scope visible to the whole company. Without this
        /// they are refused.
        #[arg(long, value_name = "SCOPE", value_parser = ["company"])]
        scope: Option<String>,
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
    /// Keep records of a kind for so many days: deliveries, jobs, events, review-texts, cost-events
    /// or activity. 0 keeps them forever. Can be repeated.
    #[arg(long, value_name = "KIND=DAYS", value_parser = days_of)]
    keep_days: Vec<(&'static str, u32)>,
}

/// Kinds of records with a retention of their own: their name here and their field.
const KINDS: [(&str, &str); 6] = [
    ("deliveries", "deliveriesMaxAgeDays"),
    ("jobs", "jobsMaxAgeDays"),
    ("events", "eventsMaxAgeDays"),
    ("review-texts", "reviewTextsMaxAgeDays"),
    ("cost-events", "costEventsMaxAgeDays"),
    ("activity", "activityMaxAgeDays"),
];

fn days_of(text: &str) -> Result<(&'static str, u32), String> {
    let known = || KINDS.map(|(name, _)| name).join(", ");
    let (name, days) =
        text.split_once('=').ok_or_else(|| format!("write KIND=DAYS with one of {}", known()))?;
    let field = KINDS.into_iter().find(|(known, _)| *known == name).map(|(_, field)| field);
    let near = || {
        nearest(name, KINDS.map(|(known, _)| known)).map(|near| format!("; did you mean `{near}`?"))
    };
    let field = field
        .ok_or_else(|| format!("`{name}` is none of {}{}", known(), near().unwrap_or_default()))?;
    days.parse().map(|days| (field, days)).map_err(|_| format!("`{days}` is no number of days"))
}

pub(super) async fn run(command: CompanyCommand) -> Result<(), CliError> {
    match command {
        CompanyCommand::List { host, paging } => {
            let session = host.open().await?;
            let row = |company: &Value| vec![text(company, "")];
            let human = |answer: &Value| {
                let shown = table(&["company"], items(answer, "items").iter().map(row).collect());
                let erasing =
                    items(answer, "erasing").iter().map(|company| erasing(&text(company, "")));
                std::iter::once(shown).chain(erasing).collect::<Vec<_>>().join("\n")
            };
            page::list_of_host(&session, &paging, "/control/v1/companies", "items", human).await
        }
        CompanyCommand::Create { company } => {
            let session = company.open().await?;
            let path = format!("/control/v1/companies/{}", escape(&session.company));
            let made = session.host.put(&path, &Value::Null).await?;
            session.show(&made, "", created)
        }
        CompanyCommand::Show { company, watch } => {
            let session = company.open().await?;
            page::watched(&watch, async || show(&session).await).await
        }
        CompanyCommand::Update(args) => update(args).await,
        CompanyCommand::Delete { company, confirm, abandon } => {
            let session = company.open().await?;
            let left =
                session.post("erase", &json!({ "confirm": confirm, "abandon": abandon })).await?;
            session.show(&left, "", details)
        }
        CompanyCommand::Export { company, to } => {
            if let Some(file) = &to {
                argument::new_file("--to", file)?;
            }
            let session = company.open().await?;
            let lines = session.host.download(&session.path("export")).await?;
            check_complete(&lines)?;
            match to {
                None => std::io::stdout().lock().write_all(&lines).map_err(CliError::from),
                Some(file) => {
                    memhost_files::durable::write(&file, &lines, 0o600)
                        .map_err(|error| CliError::file(&file, &error))?;
                    let count = lines.split_inclusive(|byte| *byte == b'\n').count();
                    let done = format!(
                        "exported {} to {}",
                        counted(count, "line", "lines"),
                        file.display()
                    );
                    Ok(writeln!(std::io::stderr(), "{done}")?)
                }
            }?;
            match unscoped(&lines) {
                0 => Ok(()),
                count => Ok(writeln!(
                    std::io::stderr(),
                    "{} without a known scope: an import refuses it unless `--scope company` makes \
                     it visible to the \
                     whole company",
                    counted(count, "record", "records")
                )?),
            }
        }
        CompanyCommand::Import { file, accept_grants, scope, company } => {
            let lines = argument::input(Some(&file))?;
            let session = company.open().await?;
            check_company(&lines, &session.company)?;
            if accept_grants {
                session.say(&requests(&lines))?;
            }
            let accepted = accept_grants.then_some("true");
            let query = query(&[("acceptGrants", accepted), ("scope", scope.as_deref())]);
            let done =
                session.host.upload(&session.path(&format!("import?{query}")), lines).await?;
            session.show(&done, "", imported)
        }
    }
}

fn erasing(company: &str) -> String {
    format!(
        "the erasure of {company} is not complete; `memhost company delete --company {company} \
         --confirm {company}` goes \
         on with it"
    )
}

fn created(made: &Value) -> String {
    let what = if made["isNew"] == true { "created" } else { "exists already" };
    format!("the company {}: {what}", text(made, "/companyId"))
}

fn imported(done: &Value) -> String {
    let mut said = format!(
        "imported {}, {} and {}; now set the secrets and create tokens",
        counted(&done["rows"], "row", "rows"),
        counted(&done["operations"], "operation", "operations"),
        counted(&done["records"], "record", "records")
    );
    for key in done["requested"].as_array().into_iter().flatten() {
        let key = text(key, "");
        let _ = write!(
            said,
            "\nthe binding {key} asks for grants or limits of its own: decide with `memhost \
             binding grant {key}`; its \
             records wait until then"
        );
    }
    said
}

async fn show(session: &Session) -> Result<String, CliError> {
    match session.host.get(&format!("/control/v1/tombstones/{}", escape(&session.company))).await {
        Ok(left) => session.format.render(&left, "", details),
        // The company was not erased, or the caller may not read tombstones.
        Err(CliError::Problem { status: 403 | 404, .. }) => {
            let mut shown = session.get("retention").await?;
            shown["usage"] = session.get("usage").await?;
            session.format.render(&shown, "", kept)
        }
        Err(error) => Err(error),
    }
}

async fn update(args: UpdateArgs) -> Result<(), CliError> {
    let session = args.company.open().await?;
    let mut present = session.get("retention").await?;
    if args.days.is_some() || args.count.is_some() || !args.keep_days.is_empty() {
        let given = [
            ("operationsMaxAgeDays", args.days.map(u64::from)),
            ("operationsMaxCount", args.count),
        ];
        let kinds = args.keep_days.iter().map(|(field, days)| (*field, Some(u64::from(*days))));
        for (name, value) in given.into_iter().chain(kinds) {
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
        Some(number) => counted(number, unit, &format!("{unit}s")),
        None => "unlimited".to_owned(),
    };
    let (days, count) =
        (kept("operationsMaxAgeDays", "day"), kept("operationsMaxCount", "operation"));
    let kinds = KINDS.map(|(name, field)| format!("{name} {}", kept(field, "day")));
    let kinds = kinds.join(", ");
    let mut said = format!(
        "retention of operations: age {days}, count {count}\nretention of other records: {kinds}"
    );
    if let Some(held) = retention.pointer("/usage/heldBytes").and_then(Value::as_u64) {
        let _ = write!(said, "\nkept by the host: {} MiB", held >> 20);
        if let Some(most) = retention.pointer("/usage/maxBytes").and_then(Value::as_u64) {
            let _ = write!(said, " of {} MiB", most >> 20);
        }
    }
    said
}
