//! What memory costs, and how good it is.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::CliError;
use super::args::{CompanyArgs, DaysArgs, PageArgs, WatchArgs};
use super::page::{self, Columns, items, query, rows, watched};

#[derive(Debug, Subcommand)]
pub(super) enum CostCommand {
    /// List cost events of operations, newest first.
    #[command(alias = "events")]
    List(PageArgs),
    /// Summarize operations, tokens and cents.
    Show(ShowArgs),
    /// Create a flat charge (short for `charge create`).
    #[command(hide = true)]
    Charge(ChargeArgs),
    /// List flat charges (short for `charge list`).
    #[command(hide = true)]
    Charges(PageArgs),
}

#[derive(Debug, Subcommand)]
pub(super) enum ChargeCommand {
    /// List flat charges, newest first.
    List(PageArgs),
    /// Create a flat charge, such as a subscription or an invoice. Charges cannot be changed; correct a mistake with
    /// --credit.
    Create(ChargeArgs),
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    company: CompanyArgs,
    /// Group by day, binding, agent, provider or model; separate several with commas.
    #[arg(long, default_value = "binding", value_name = "LIST")]
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
    cents: f64,
    /// Record a credit instead of a charge.
    #[arg(long)]
    credit: bool,
    /// Time of the charge, RFC 3339 [default: now].
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// Binding that the charge is for.
    #[arg(long, value_name = "KEY")]
    binding: Option<String>,
    /// Description.
    #[arg(long)]
    description: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum EvaluationCommand {
    /// Show the metrics by binding.
    Show(EvaluationShowArgs),
}

#[derive(Debug, Args)]
pub(super) struct EvaluationShowArgs {
    #[command(flatten)]
    company: CompanyArgs,
    #[command(flatten)]
    days: DaysArgs,
    #[command(flatten)]
    watch: WatchArgs,
}

/// The evaluation command; `show` is its default.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct EvaluationArgs {
    #[command(subcommand)]
    command: Option<EvaluationCommand>,
    #[command(flatten)]
    show: EvaluationShowArgs,
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
        CostCommand::List(page) => page::list(&page, "cost-events", &[], EVENTS).await,
        CostCommand::Show(args) => show(args).await,
        CostCommand::Charge(args) => charge(ChargeCommand::Create(args)).await,
        CostCommand::Charges(page) => charge(ChargeCommand::List(page)).await,
    }
}

async fn show(args: ShowArgs) -> Result<(), CliError> {
    let session = args.company.open().await?;
    let pairs =
        [("groupBy", Some(args.by.as_str())), ("since", args.days.from.as_deref()), ("until", args.days.to.as_deref())];
    let path = format!("costs?{}", query(&pairs));
    watched(&args.watch, async || {
        session.format.render(&session.get(&path).await?, "rows", |sums| table(sums, &args.by))
    })
    .await
}

/// The grouping columns and the numbers.
fn table(sums: &Value, by: &str) -> String {
    let is_grouped = |title: &str| by.split(',').any(|by| by == title);
    let keys = ["day", "binding", "agent", "provider", "model"];
    let columns: Vec<_> =
        SUMS.iter().filter(|(title, _)| !keys.contains(title) || is_grouped(title)).copied().collect();
    let mut all = items(sums, "rows").to_vec();
    if all.len() > 1 {
        all.push(sums["total"].clone());
    }
    rows(&all, &columns)
}

pub(super) async fn charge(command: ChargeCommand) -> Result<(), CliError> {
    let args = match command {
        ChargeCommand::List(page) => return page::list(&page, "finance-events", &[], CHARGES).await,
        ChargeCommand::Create(args) => args,
    };
    let at = args.at.unwrap_or_else(|| jiff::Timestamp::now().to_string());
    let direction = if args.credit { "credit" } else { "debit" };
    let mut body = json!({
        "eventKind": args.kind, "biller": args.biller, "amountCents": args.cents, "occurredAt": at,
        "direction": direction,
    });
    for (name, value) in [("bindingKey", args.binding), ("description", args.description)] {
        if let Some(value) = value {
            body[name] = value.into();
        }
    }
    let session = args.company.open().await?;
    let made = session.post("finance-events", &body).await?;
    session.show(&made, "", |made| rows(std::slice::from_ref(made), CHARGES))
}

pub(super) async fn evaluation(args: EvaluationArgs) -> Result<(), CliError> {
    let args = match args.command {
        Some(EvaluationCommand::Show(args)) => args,
        None => args.show,
    };
    let session = args.company.open().await?;
    let pairs = [("since", args.days.from.as_deref()), ("until", args.days.to.as_deref())];
    let path = format!("evaluation?{}", query(&pairs));
    watched(&args.watch, async || session.format.render(&session.get(&path).await?, "bindings", evaluated)).await
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
