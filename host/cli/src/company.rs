//! `memhost company`: creation, retention, export, import and erasure of a company.

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::json;

use super::answer::{self, Answer};
use super::args::{CompanyArgs, HostArgs, Paging, WatchArgs};
use super::output::{details, table};
use super::page::{self, query};
use super::session::Session;
use super::texts::escape;
use super::{CliError, Result, argument};
use memhost_core::{
    Caller, CompanyUsage, Erased, Imported, Restored, Retention, Service, ServiceError,
    ServiceOptions, restore_backup,
};
use memhost_http::api::{CompaniesView, CompanyView};
use memhost_types::{BindingKey, CompanyId, OperationErrorCode, counted};

mod lines;
use lines::{check_company, check_complete, requests, unscoped};

/// How long a backup's providers may take to be compiled.
const COMPILING: Duration = Duration::from_secs(600);

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
    /// Erase a company from this host and its providers. This cannot be undone, and its ID is not
    /// used again on this host: an export can be imported on another host only. To go back to an
    /// export, use `company restore`.
    Delete {
        #[command(flatten)]
        company: CompanyArgs,
        /// The company ID again, to confirm that it is erased and not used again on this host.
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
    /// Put the records of an export or a backup in the place of those that a company has. Nothing
    /// is erased: bindings, tokens, budgets and the log stay, and so does what was forgotten since.
    Restore {
        /// The export file, or the directory of a backup.
        file: PathBuf,
        /// 'company': make records without a known scope visible to the whole company. Without this
        /// they are refused.
        #[arg(long, value_name = "SCOPE", value_parser = ["company"])]
        scope: Option<String>,
        #[command(flatten)]
        company: CompanyArgs,
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
    #[arg(long, value_name = "NUMBER", id = "operationsMaxAgeDays")]
    days: Option<u32>,
    /// Keep at most this many operations; 0 keeps all.
    #[arg(long, value_name = "NUMBER", id = "operationsMaxCount")]
    count: Option<u64>,
    /// Keep records of a kind for so many days: deliveries, jobs, events, review-texts, cost-events
    /// or activity. 0 keeps them forever. Can be repeated.
    #[arg(long, value_name = "KIND=DAYS", value_parser = days_of)]
    keep_days: Vec<(KindDays, u32)>,
}

/// How many days a retention keeps one kind of records.
type KindDays = fn(&mut Retention) -> &mut Option<u32>;

/// Kinds of records with a retention of their own: their name here and their field.
const KINDS: [(&str, KindDays); 6] = [
    ("deliveries", |kept| &mut kept.deliveries_max_age_days),
    ("jobs", |kept| &mut kept.jobs_max_age_days),
    ("events", |kept| &mut kept.events_max_age_days),
    ("review-texts", |kept| &mut kept.review_texts_max_age_days),
    ("cost-events", |kept| &mut kept.cost_events_max_age_days),
    ("activity", |kept| &mut kept.activity_max_age_days),
];

fn days_of(text: &str) -> Result<(KindDays, u32), String> {
    let known = || KINDS.map(|(name, _)| name).join(", ");
    let (name, days) =
        text.split_once('=').ok_or_else(|| format!("write KIND=DAYS with one of {}", known()))?;
    let unknown = || {
        let near = argument::did_you_mean(name, KINDS.map(|(known, _)| known));
        format!("`{name}` is none of {}{near}", known())
    };
    let (_, field) = KINDS.into_iter().find(|(known, _)| *known == name).ok_or_else(unknown)?;
    days.parse().map(|days| (field, days)).map_err(|_| format!("`{days}` is no number of days"))
}

pub(super) async fn run(command: CompanyCommand) -> Result<()> {
    match command {
        CompanyCommand::List { host, paging } => {
            let session = host.open().await?;
            let human = |all: &CompaniesView| {
                let rows = all.items.iter().map(|company| vec![company.to_string()]).collect();
                let erasing = all.erasing.iter().map(erasing);
                let shown = std::iter::once(table(&["company"], rows)).chain(erasing);
                shown.collect::<Vec<_>>().join("\n")
            };
            page::list_of_host(&session, &paging, "/control/v1/companies", human).await
        }
        CompanyCommand::Create { company } => {
            let session = company.open().await?;
            let path = format!("/control/v1/companies/{}", escape(&session.company));
            let made = session.host.put(&path, &()).await?;
            session.show(&made, created)
        }
        CompanyCommand::Show { company, watch } => {
            let session = company.open().await?;
            page::watched(&watch, async || show(&session).await).await
        }
        CompanyCommand::Update(args) => update(args).await,
        CompanyCommand::Delete { company, confirm, abandon } => {
            let session = company.open().await?;
            let body = json!({ "confirm": confirm, "abandon": abandon });
            let left: Answer<Erased> = session.post("erase", &body).await?;
            session.show(&left, |_| details(left.json()))
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
                     it visible to the whole company",
                    counted(count, "record", "records")
                )?),
            }
        }
        CompanyCommand::Restore { file, scope, company } => restore(file, scope, company).await,
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
            session.show(&done, imported)
        }
    }
}

async fn restore(file: PathBuf, scope: Option<String>, company: CompanyArgs) -> Result<()> {
    let session = company.open().await?;
    let lines = match file.is_dir() {
        true => of_backup(&file, &session.company).await?,
        false => argument::input(Some(&file))?,
    };
    check_complete(lines.as_bytes())?;
    check_company(&lines, &session.company)?;
    let query = query(&[("scope", scope.as_deref())]);
    let done = session.host.upload(&session.path(&format!("restore?{query}")), lines).await?;
    session.show(&done, restored)
}

/// The export of a company in a backup, by a host of its own that delivers nothing and is gone
/// afterwards.
async fn of_backup(backup: &Path, company: &str) -> Result<String> {
    let company = company.parse().map_err(|error| CliError::input("--company", error))?;
    let directory = tempfile::tempdir()?;
    let data_dir = directory.path().join("data");
    restore_backup(backup, &data_dir).map_err(CliError::host)?;
    // What needs the key asks other systems, and a restored host does not.
    let vault_key = Some("0".repeat(64));
    let options = ServiceOptions { vault_key, ..ServiceOptions::new(&data_dir) };
    let service = Service::open(options).await.map_err(CliError::data_dir)?;
    // Only in the copy: the host would name what it cannot restore, and this one cannot read it.
    let control = service.control();
    for key in control.binding_keys(&company) {
        let binding = control.stored_binding(&company, &key).map_err(CliError::host)?;
        if !binding.grants.http.is_empty() {
            let deleted = control.delete_binding(&Caller::system(), &company, &key, None).await;
            deleted.map_err(CliError::host)?;
        }
    }
    let transfer = service.transfer();
    let until = Instant::now() + COMPILING;
    // Nothing of the backup is compiled on this machine yet.
    while let Err(error) = transfer.check_export(&company).await {
        if !is_loading(&error) || Instant::now() > until {
            return Err(CliError::host(error));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let (mut lines, mut text) = (transfer.export(&company), String::new());
    while let Some(line) = lines.recv().await {
        text.push_str(&line.map_err(CliError::host)?);
    }
    Ok(text)
}

/// Whether a provider is still being compiled.
fn is_loading(error: &ServiceError) -> bool {
    match error {
        ServiceError::NotExported { error, .. } => is_loading(error),
        ServiceError::Operation { error, .. } => error.code == OperationErrorCode::ProviderLoading,
        _ => false,
    }
}

fn restored(done: &Restored) -> String {
    let keys = done.bindings.iter().map(BindingKey::as_str).collect::<Vec<_>>().join(", ");
    let mut said = match keys.is_empty() {
        true => "nothing was restored".to_owned(),
        false => format!("restored {} of {keys}", counted(done.records, "record", "records")),
    };
    if done.forgotten > 0 {
        let _ = write!(said, "\nrecords of the file that stay forgotten: {}", done.forgotten);
    }
    for (key, reason) in &done.not_restored {
        let _ = write!(said, "\nthe binding {key} is as it was: {reason}");
    }
    said
}

fn erasing(company: &CompanyId) -> String {
    format!(
        "the erasure of {company} is not complete; `memhost company delete --company {company} \
         --confirm {company}` goes on with it"
    )
}

fn created(made: &CompanyView) -> String {
    let what = if made.is_new { "created" } else { "exists already" };
    format!("the company {}: {what}", made.company_id)
}

fn imported(done: &Imported) -> String {
    let mut said = format!(
        "imported {}, {} and {}; now set the secrets and create tokens",
        counted(done.rows, "row", "rows"),
        counted(done.operations, "operation", "operations"),
        counted(done.records, "record", "records")
    );
    for key in &done.requested {
        let _ = write!(
            said,
            "\nthe binding {key} asks for grants or limits of its own: decide with `memhost \
             binding grant {key}`; its \
             records wait until then"
        );
    }
    said
}

/// A company's retention, and how much the host keeps of it where that was asked for.
#[derive(Deserialize)]
struct Kept {
    #[serde(flatten)]
    retention: Retention,
    usage: Option<CompanyUsage>,
}

async fn show(session: &Session) -> Result<String> {
    let tombstone = format!("/control/v1/tombstones/{}", escape(&session.company));
    match session.host.get::<Erased>(&tombstone).await {
        Ok(left) => session.format.render(left.json(), "", || Ok(details(left.json()))),
        // The company was not erased, or the caller may not read tombstones.
        Err(CliError::Problem { status: 403 | 404, .. }) => {
            let mut shown = session.get::<Retention>("retention").await?.into_json();
            shown["usage"] = session.get::<CompanyUsage>("usage").await?.into_json();
            session.format.render(&shown, "", || answer::read(&shown).map(|read| kept(&read)))
        }
        Err(error) => Err(error),
    }
}

async fn update(args: UpdateArgs) -> Result<()> {
    if args.days.is_none() && args.count.is_none() && args.keep_days.is_empty() {
        return Err(argument::nothing_to_change("--days, --count and --keep-days"));
    }
    let session = args.company.open().await?;
    let present: Answer<Kept> = session.get("retention").await?;
    let mut wanted = present.read()?.retention;
    if let Some(days) = args.days {
        wanted.operations_max_age_days = Some(days).filter(|days| *days > 0);
    }
    if let Some(count) = args.count {
        wanted.operations_max_count = Some(count).filter(|count| *count > 0);
    }
    for (kind, days) in args.keep_days {
        *kind(&mut wanted) = Some(days).filter(|days| *days > 0);
    }
    session.show(&session.put("retention", &wanted).await?, kept)
}

fn kept(kept: &Kept) -> String {
    let most = |most: Option<u64>, unit: &str| match most {
        Some(number) => counted(number, unit, &format!("{unit}s")),
        None => "unlimited".to_owned(),
    };
    let mut retention = kept.retention;
    let days = most(retention.operations_max_age_days.map(u64::from), "day");
    let count = most(retention.operations_max_count, "operation");
    let kinds = KINDS
        .map(|(name, days)| format!("{name} {}", most(days(&mut retention).map(u64::from), "day")));
    let kinds = kinds.join(", ");
    let mut said = format!(
        "retention of operations: age {days}, count {count}\nretention of other records: {kinds}"
    );
    if let Some(CompanyUsage { held_bytes, max_bytes }) = kept.usage {
        let _ = write!(said, "\nkept by the host: {} MiB", held_bytes >> 20);
        if let Some(most) = max_bytes {
            let _ = write!(said, " of {} MiB", most >> 20);
        }
    }
    said
}
