//! `memhost cost`, `charge` and `evaluation`: the cost and the quality of memory.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::CliError;
use super::args::{CompanyArgs, DaysArgs, PageArgs, WatchArgs};
use super::argument::{time, without_nulls};
use super::output::moment;
use super::page::{self, Columns, items, query, rows};
use memhost_types::nearest;

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
    /// Group by day, binding, agent, provider or model; separate several with commas.
    #[arg(long, default_value = "binding", value_name = "LIST", value_parser = groups)]
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
    #[arg(long)]
    kind: String,
    /// Biller.
    #[arg(long)]
    biller: String,
    /// Amount in cents.
    #[arg(long, value_name = "CENTS")]
    cents: u64,
    /// Record a credit instead of a charge.
    #[arg(long)]
    credit: bool,
    /// Time of the charge, RFC 3339 [default: now].
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Option<String>,
    /// Binding that the charge is for.
    #[arg(long, value_name = "KEY")]
    binding: Option<String>,
    /// Description.
    #[arg(long)]
    description: Option<String>,
    /// Issue that the charge is for.
    #[arg(long, value_name = "ID")]
    issue: Option<String>,
    /// Project that the charge is for.
    #[arg(long, value_name = "ID")]
    project: Option<String>,
    /// Run that the charge is for.
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Number of units; needs --unit.
    #[arg(long, value_name = "NUMBER", requires = "unit")]
    quantity: Option<u64>,
    /// Unit, such as gb_month; needs --quantity.
    #[arg(long, requires = "quantity")]
    unit: Option<String>,
    /// Cost event that the charge belongs to.
    #[arg(long, value_name = "ID")]
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

const SUMS: &Columns = &[
    ("day", "/day"),
    ("binding", "/bindingKey"),
    ("agent", "/agentId"),
    ("provider", "/provider"),
    ("model", "/model"),
    ("operations", "/operations"),
    ("reads", "/reads"),
    ("writes", "/writes"),
    ("failed", "/failed"),
    ("refused", "/refused"),
    ("tokens in", "/inputTokens"),
    ("tokens out", "/outputTokens"),
    ("tokens embedded", "/embeddingTokens"),
    ("cents", "/costCents"),
    ("p50", "/latencyP50Us"),
    ("p99", "/latencyP99Us"),
];

const EVENTS: &Columns = &[
    ("time", "/occurredAt"),
    ("binding", "/bindingKey"),
    ("agent", "/agentId"),
    ("provider", "/provider"),
    ("model", "/model"),
    ("tokens in", "/inputTokens"),
    ("tokens out", "/outputTokens"),
    ("cents", "/costCents"),
    ("operation", "/operationId"),
];

const CHARGES: &Columns = &[
    ("time", "/occurredAt"),
    ("kind", "/eventKind"),
    ("direction", "/direction"),
    ("biller", "/biller"),
    ("binding", "/bindingKey"),
    ("cents", "/amountCents"),
    ("currency", "/currency"),
    ("description", "/description"),
];

const EVALUATION: &Columns = &[
    ("binding", "/bindingKey"),
    ("queries", "/queries"),
    ("hit rate", "/recallHitRate"),
    ("empty rate", "/emptyQueryRate"),
    ("corrections", "/corrections"),
    ("failed extractions", "/extractionFailures"),
    ("succeeded", "/succeeded"),
    ("failed", "/failed"),
];

pub(super) async fn run(command: CostCommand) -> Result<(), CliError> {
    match command {
        CostCommand::List(args) => {
            let order = args.oldest.then_some("oldest");
            page::list_as(&args.page, "cost-events", &[("order", order)], events).await
        }
        CostCommand::Show(args) => show(args).await,
    }
}

fn events(page: &Value) -> String {
    let table = rows(items(page, "items"), EVENTS);
    match page["trimmedBefore"].as_str() {
        Some(before) => format!(
            "{table}\n\nretention has removed events that occurred before {}",
            moment(before)
        ),
        None => table,
    }
}

async fn show(args: ShowArgs) -> Result<(), CliError> {
    let session = args.company.open().await?;
    let pairs = [
        ("groupBy", Some(args.by.as_str())),
        ("since", args.days.since.as_deref()),
        ("until", args.days.until.as_deref()),
    ];
    let path = format!("costs?{}", query(&pairs));
    page::watch(
        &session,
        &args.watch,
        "rows",
        async || session.get(&path).await,
        |sums| table(sums, &args.by),
    )
    .await
}

/// A list of groupings.
fn groups(text: &str) -> Result<String, String> {
    const ALL: [&str; 5] = ["day", "binding", "agent", "provider", "model"];
    let Some(wrong) = text.split(',').find(|by| !ALL.contains(by)) else {
        return Ok(text.to_owned());
    };
    let near =
        nearest(wrong, ALL).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    Err(format!("`{wrong}` is none of {}{near}", ALL.join(", ")))
}

/// The grouping columns and the numbers.
fn table(sums: &Value, by: &str) -> String {
    let is_grouped = |title: &str| by.split(',').any(|by| by == title);
    let keys = ["day", "binding", "agent", "provider", "model"];
    let columns: Vec<_> = SUMS
        .iter()
        .filter(|(title, _)| !keys.contains(title) || is_grouped(title))
        .copied()
        .collect();
    let mut all = items(sums, "rows").to_vec();
    if all.len() > 1 {
        all.push(sums["total"].clone());
    }
    rows(&all, &columns)
}

pub(super) async fn charge(command: ChargeCommand) -> Result<(), CliError> {
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
    session.show(&made, "", |made| rows(std::slice::from_ref(made), CHARGES))
}

pub(super) async fn evaluation(command: EvaluationCommand) -> Result<(), CliError> {
    let EvaluationCommand::Show { company, days, watch } = command;
    let session = company.open().await?;
    let pairs = [("since", days.since.as_deref()), ("until", days.until.as_deref())];
    let path = format!("evaluation?{}", query(&pairs));
    page::watch(&session, &watch, "bindings", async || session.get(&path).await, evaluated).await
}

fn evaluated(report: &Value) -> String {
    let mut all = items(report, "bindings").to_vec();
    all.push(report["total"].clone());
    all.iter_mut().for_each(shorten);
    let table = rows(&all, EVALUATION);
    match report["isComplete"] == true {
        true => table,
        false => format!("{table}\n\nthe hit rate covers only the newest operations of these days"),
    }
}

/// Rates with three digits.
fn shorten(row: &mut Value) {
    for name in ["recallHitRate", "emptyQueryRate"] {
        if let Some(rate) = row.get(name).and_then(Value::as_f64) {
            row[name] = format!("{rate:.3}").into();
        }
    }
}
