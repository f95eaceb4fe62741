//! `memhost cost`, `charge` and `evaluation`: the cost and the quality of memory.

use clap::{Args, Subcommand};
use serde_json::json;

use super::Result;
use super::args::{CompanyArgs, DaysArgs, PageArgs, WatchArgs};
use super::argument::{did_you_mean, time, without_nulls};
use super::page::{self, Columns, query, rows};
use super::texts::{cell, micros, moment};
use memhost_core::{CostEventPage, Evaluation, EvaluationReport, Sums, SumsRow};
use memhost_types::{CostEvent, FinanceEvent};

#[derive(Debug, Subcommand)]
pub(super) enum CostCommand {
    /// List cost events of operations, newest first.
    List(ListArgs),
    /// Summarize operations, tokens and cents.
    Show(ShowArgs),
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "one is made in a process")]
pub(super) enum ChargeCommand {
    /// List flat charges, newest first.
    List(PageArgs),
    /// Create a flat charge (in the API: finance event), such as a subscription or an invoice. It
    /// cannot be changed; correct a mistake with --credit.
    Create(ChargeArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    page: PageArgs,
    /// List oldest first, in the order in which operations ended. The last page has a cursor for
    /// what comes later.
    #[arg(long)]
    oldest: bool,
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    company: CompanyArgs,
    /// Group by day, binding, agent, provider, model, issue, project or run; separate several with
    /// commas.
    #[arg(
        long, default_value = "binding", value_name = "LIST", value_parser = groups, id = "groupBy"
    )]
    by: String,
    #[command(flatten)]
    days: DaysArgs,
    #[command(flatten)]
    watch: WatchArgs,
}

#[derive(Debug, Args)]
pub(super) struct ChargeArgs {
    #[command(flatten)]
    company: CompanyArgs,
    /// Kind of charge, such as platform_fee or log_storage_charge.
    #[arg(long, id = "eventKind", value_name = "KIND")]
    kind: String,
    /// Biller.
    #[arg(long)]
    biller: String,
    /// Amount in cents.
    #[arg(long, value_name = "CENTS", id = "amountCents")]
    cents: u64,
    /// Record a credit instead of a charge.
    #[arg(long)]
    credit: bool,
    /// Time of the charge, RFC 3339 [default: now].
    #[arg(long, value_name = "TIME", value_parser = time, id = "occurredAt")]
    at: Option<String>,
    /// Binding that the charge is for.
    #[arg(long, value_name = "KEY", id = "bindingKey")]
    binding: Option<String>,
    /// Description.
    #[arg(long)]
    description: Option<String>,
    /// Issue that the charge is for.
    #[arg(long, value_name = "ID", id = "issueId")]
    issue: Option<String>,
    /// Project that the charge is for.
    #[arg(long, value_name = "ID", id = "projectId")]
    project: Option<String>,
    /// Run that the charge is for.
    #[arg(long, value_name = "ID", id = "heartbeatRunId")]
    run: Option<String>,
    /// Number of units; needs --unit.
    #[arg(long, value_name = "NUMBER", requires = "unit")]
    quantity: Option<u64>,
    /// Unit, such as gb_month; needs --quantity.
    #[arg(long, requires = "quantity")]
    unit: Option<String>,
    /// Cost event that the charge belongs to.
    #[arg(long, value_name = "ID", id = "costEventId")]
    cost_event: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum EvaluationCommand {
    /// Show the metrics by binding.
    Show {
        #[command(flatten)]
        company: CompanyArgs,
        #[command(flatten)]
        days: DaysArgs,
        #[command(flatten)]
        watch: WatchArgs,
    },
}

/// The columns of what sums are grouped by.
const GROUPS: &Columns<SumsRow> = &[
    ("day", |row| cell(&row.day)),
    ("binding", |row| cell(&row.binding_key)),
    ("agent", |row| cell(&row.agent_id)),
    ("provider", |row| cell(&row.provider)),
    ("model", |row| cell(&row.model)),
    ("issue", |row| cell(&row.issue_id)),
    ("project", |row| cell(&row.project_id)),
    ("run", |row| cell(&row.run_id)),
];

const SUMS: &Columns<SumsRow> = &[
    ("operations", |row| cell(&row.sums.counts.operations)),
    ("reads", |row| cell(&row.sums.counts.reads)),
    ("writes", |row| cell(&row.sums.counts.writes)),
    ("failed", |row| cell(&row.sums.counts.failed)),
    ("refused", |row| cell(&row.sums.counts.refused)),
    ("tokens in", |row| cell(&row.sums.counts.input_tokens)),
    ("tokens out", |row| cell(&row.sums.counts.output_tokens)),
    ("tokens embedded", |row| cell(&row.sums.counts.embedding_tokens)),
    ("cents", |row| cell(&row.sums.cost)),
    ("p50", |row| micros(row.sums.latency_p50_us)),
    ("p99", |row| micros(row.sums.latency_p99_us)),
];

const EVENTS: &Columns<CostEvent> = &[
    ("time", |event| moment(event.occurred_at)),
    ("binding", |event| cell(&event.binding_key)),
    ("agent", |event| cell(&event.agent_id)),
    ("provider", |event| cell(&event.provider)),
    ("model", |event| cell(&event.model)),
    ("tokens in", |event| cell(&event.input_tokens)),
    ("tokens out", |event| cell(&event.output_tokens)),
    ("cents", |event| cell(&event.cost)),
    ("operation", |event| cell(&event.operation_id)),
];

const CHARGES: &Columns<FinanceEvent> = &[
    ("time", |event| moment(event.entered.occurred_at)),
    ("kind", |event| cell(&event.entered.event_kind)),
    ("direction", |event| cell(&event.entered.direction)),
    ("biller", |event| cell(&event.entered.biller)),
    ("binding", |event| cell(&event.entered.binding_key)),
    ("cents", |event| cell(&event.entered.amount)),
    ("currency", |event| cell(&event.entered.currency)),
    ("description", |event| cell(&event.entered.description)),
];

const EVALUATION: &Columns<Evaluation> = &[
    ("binding", |row| cell(&row.binding_key)),
    ("queries", |row| cell(&row.queries)),
    ("hit rate", |row| rate(row.recall_hit_rate)),
    ("empty rate", |row| rate(row.empty_query_rate)),
    ("corrections", |row| cell(&row.corrections)),
    ("failed extractions", |row| cell(&row.extraction_failures)),
    ("succeeded", |row| cell(&row.succeeded)),
    ("failed", |row| cell(&row.failed)),
];

fn rate(rate: Option<f64>) -> String {
    rate.map(|rate| format!("{rate:.3}")).unwrap_or_default()
}

pub(super) async fn run(command: CostCommand) -> Result<()> {
    match command {
        CostCommand::List(args) => {
            let order = args.oldest.then_some("oldest");
            page::list_as(&args.page, "cost-events", &[("order", order)], events).await
        }
        CostCommand::Show(args) => show(args).await,
    }
}

fn events(page: &CostEventPage) -> String {
    let table = rows(&page.items, EVENTS);
    match page.trimmed_before {
        Some(before) => format!(
            "{table}\n\nretention has removed events that occurred before {}",
            moment(before)
        ),
        None => table,
    }
}

async fn show(args: ShowArgs) -> Result<()> {
    let session = args.company.open().await?;
    let pairs = [
        ("groupBy", Some(args.by.as_str())),
        ("since", args.days.since.as_deref()),
        ("until", args.days.until.as_deref()),
    ];
    let path = format!("costs?{}", query(&pairs));
    let fetch = async || session.get(&path).await;
    page::watch_list(&session, &args.watch, fetch, |sums| table(sums, &args.by)).await
}

/// A list of groupings.
fn groups(text: &str) -> Result<String, String> {
    const ALL: [&str; 8] =
        ["day", "binding", "agent", "provider", "model", "issue", "project", "run"];
    let Some(wrong) = text.split(',').find(|by| !ALL.contains(by)) else {
        return Ok(text.to_owned());
    };
    let near = did_you_mean(wrong, ALL);
    Err(format!("`{wrong}` is none of {}{near}", ALL.join(", ")))
}

/// The grouping columns and the numbers.
fn table(sums: &Sums, by: &str) -> String {
    let is_grouped = |title: &str| by.split(',').any(|by| by == title);
    let groups = GROUPS.iter().filter(|(title, _)| is_grouped(title));
    let columns: Vec<_> = groups.chain(SUMS).copied().collect();
    let mut all = sums.rows.clone();
    if all.len() > 1 {
        let sums = sums.total.clone();
        let total = SumsRow {
            day: None,
            binding_key: None,
            binding_id: None,
            agent_id: None,
            provider: None,
            model: None,
            issue_id: None,
            project_id: None,
            run_id: None,
            sums,
        };
        all.push(total);
    }
    let mut text = rows(&all, &columns);
    if !sums.is_complete {
        text.push_str(
            "\nThe rows are of the newest operations of the log only; the total is of all days.\n",
        );
    }
    text
}

pub(super) async fn charge(command: ChargeCommand) -> Result<()> {
    let args = match command {
        ChargeCommand::List(page) => {
            return page::list(&page, "finance-events", &[], CHARGES).await;
        }
        ChargeCommand::Create(args) => args,
    };
    let at = args.at.unwrap_or_else(|| jiff::Timestamp::now().to_string());
    let direction = if args.credit { "credit" } else { "debit" };
    let body = without_nulls(json!({
        "eventKind": args.kind, "biller": args.biller, "amountCents": args.cents, "occurredAt": at,
        "direction": direction, "bindingKey": args.binding, "description": args.description,
        "issueId": args.issue, "projectId": args.project, "heartbeatRunId": args.run,
        "quantity": args.quantity, "unit": args.unit, "costEventId": args.cost_event,
    }));
    let session = args.company.open().await?;
    let made = session.post("finance-events", &body).await?;
    session.show(&made, |made| rows(std::slice::from_ref(made), CHARGES))
}

pub(super) async fn evaluation(command: EvaluationCommand) -> Result<()> {
    let EvaluationCommand::Show { company, days, watch } = command;
    let session = company.open().await?;
    let pairs = [("since", days.since.as_deref()), ("until", days.until.as_deref())];
    let path = format!("evaluation?{}", query(&pairs));
    page::watch_list(&session, &watch, async || session.get(&path).await, evaluated).await
}

fn evaluated(report: &EvaluationReport) -> String {
    let all = [report.bindings.as_slice(), std::slice::from_ref(&report.total)].concat();
    let table = rows(&all, EVALUATION);
    match report.is_complete {
        true => table,
        false => format!("{table}\n\nthe hit rate covers only the newest operations of these days"),
    }
}
