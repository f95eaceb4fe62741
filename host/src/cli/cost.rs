//! What memory costs, how much it may, and how good it is.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::output::{escape, json as print_json, line};
use super::page::{self, Columns, PageArgs, path, query, rows};
use super::{Backend, CliError, CompanyArgs};

#[derive(Debug, Subcommand)]
pub(super) enum CostCommand {
    /// Show sums over operations, tokens and cents.
    Show(ShowArgs),
    /// Show what was billed for single operations, newest first.
    Events(PageArgs),
    /// Enter a flat charge, such as a subscription or an invoice.
    Charge(ChargeArgs),
    /// Show flat charges, newest first.
    Charges(PageArgs),
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    #[command(flatten)]
    company: CompanyArgs,
    /// One row for each: day, binding, agent, provider, model, or several with commas.
    #[arg(long, default_value = "binding", value_name = "LIST")]
    by: String,
    /// The first day, such as 2026-11-01; 30 days before the last where absent.
    #[arg(long, value_name = "DAY")]
    since: Option<String>,
    /// The last day; today where absent. Days are days in UTC.
    #[arg(long, value_name = "DAY")]
    until: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct ChargeArgs {
    #[command(flatten)]
    company: CompanyArgs,
    /// What kind of charge, such as platform_fee or log_storage_charge.
    #[arg(long)]
    kind: String,
    /// Who sends the bill.
    #[arg(long)]
    biller: String,
    /// How much, in cents.
    #[arg(long)]
    cents: f64,
    /// When, RFC 3339; now where absent.
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// For which binding, if for one.
    #[arg(long, value_name = "KEY")]
    binding: Option<String>,
    /// In words.
    #[arg(long)]
    description: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum BudgetCommand {
    /// Show the budgets as they stand.
    List(CompanyArgs),
    /// Set how much may be spent. Reaching it stops every operation until the next period begins.
    Set {
        #[command(flatten)]
        which: WhichArgs,
        /// How much, in cents.
        #[arg(long)]
        cents: f64,
        /// Warn at this share of it.
        #[arg(long, default_value_t = 0.8, value_name = "SHARE")]
        warn: f64,
    },
    /// Remove a budget.
    Remove(WhichArgs),
}

#[derive(Debug, Args)]
pub(super) struct WhichArgs {
    #[command(flatten)]
    company: CompanyArgs,
    /// Over which time.
    #[arg(long, value_enum, default_value_t = Period::Month)]
    period: Period,
    /// Of one binding; of the company where absent.
    #[arg(long, value_name = "KEY")]
    binding: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Period {
    Day,
    Month,
}

#[derive(Debug, Args)]
pub(super) struct EvaluationArgs {
    #[command(flatten)]
    company: CompanyArgs,
    /// The first day, such as 2026-11-01; 30 days before the last where absent.
    #[arg(long, value_name = "DAY")]
    since: Option<String>,
    /// The last day; today where absent. Days are days in UTC.
    #[arg(long, value_name = "DAY")]
    until: Option<String>,
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
    ("in", "/inputTokens"),
    ("out", "/outputTokens"),
    ("embedded", "/embeddingTokens"),
    ("cents", "/costCents"),
    ("p50", "/latencyP50Us"),
    ("p99", "/latencyP99Us"),
];

const EVENTS: &Columns = &[
    ("when", "/occurredAt"),
    ("binding", "/bindingKey"),
    ("agent", "/agentId"),
    ("provider", "/provider"),
    ("model", "/model"),
    ("in", "/inputTokens"),
    ("out", "/outputTokens"),
    ("cents", "/costCents"),
    ("operation", "/operationId"),
];

const CHARGES: &Columns = &[
    ("when", "/occurredAt"),
    ("kind", "/eventKind"),
    ("biller", "/biller"),
    ("binding", "/bindingKey"),
    ("cents", "/amountCents"),
    ("currency", "/currency"),
    ("description", "/description"),
];

const BUDGETS: &Columns = &[
    ("binding", "/bindingKey"),
    ("period", "/period"),
    ("limit", "/limitCents"),
    ("spent", "/spentCents"),
    ("state", "/state"),
    ("begins anew", "/resetsAt"),
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
        CostCommand::Show(args) => {
            let pairs = [
                ("groupBy", Some(args.by.as_str())),
                ("since", args.since.as_deref()),
                ("until", args.until.as_deref()),
            ];
            let path = path(&args.company, &format!("costs?{}", query(&pairs)));
            let sums = Backend::open(&args.company.host).await?.get(&path).await?;
            if args.company.host.json {
                return print_json(&sums);
            }
            // Only what the rows are told apart by, and the numbers.
            let is_grouped = |title: &str| args.by.split(',').any(|by| by == title);
            let keys = ["day", "binding", "agent", "provider", "model"];
            let columns: Vec<_> =
                SUMS.iter().filter(|(title, _)| !keys.contains(title) || is_grouped(title)).copied().collect();
            let mut items = sums["rows"].as_array().cloned().unwrap_or_default();
            if items.len() > 1 {
                items.push(sums["total"].clone());
            }
            rows(&items, &columns)
        }
        CostCommand::Events(page) => page::list(&page, "cost-events", &[], EVENTS).await,
        CostCommand::Charges(page) => page::list(&page, "finance-events", &[], CHARGES).await,
        CostCommand::Charge(args) => {
            let at = args.at.unwrap_or_else(|| jiff::Timestamp::now().to_string());
            let mut body =
                json!({ "eventKind": args.kind, "biller": args.biller, "amountCents": args.cents, "occurredAt": at });
            for (name, value) in [("bindingKey", args.binding), ("description", args.description)] {
                if let Some(value) = value {
                    body[name] = value.into();
                }
            }
            let host = Backend::open(&args.company.host).await?;
            let made = host.post(&path(&args.company, "finance-events"), &body).await?;
            page::changed(&args.company, &made, CHARGES)
        }
    }
}

pub(super) async fn budget(command: BudgetCommand) -> Result<(), CliError> {
    let (company, answer) = match command {
        BudgetCommand::List(company) => {
            let answer = Backend::open(&company.host).await?.get(&path(&company, "budgets")).await?;
            (company, answer)
        }
        BudgetCommand::Set { which, cents, warn } => {
            let body = json!({ "limitCents": cents, "warnShare": warn });
            let answer = Backend::open(&which.company.host).await?.put(&budget_path(&which), &body).await?;
            (which.company, answer)
        }
        BudgetCommand::Remove(which) => {
            let answer = Backend::open(&which.company.host).await?.delete(&budget_path(&which)).await?;
            (which.company, answer)
        }
    };
    match company.host.json {
        true => print_json(&answer),
        false => rows(answer["items"].as_array().map_or(&[], Vec::as_slice), BUDGETS),
    }
}

fn budget_path(which: &WhichArgs) -> String {
    let period = match which.period {
        Period::Day => "day",
        Period::Month => "month",
    };
    match &which.binding {
        Some(key) => path(&which.company, &format!("bindings/{}/budgets/{period}", escape(key))),
        None => path(&which.company, &format!("budgets/{period}")),
    }
}

pub(super) async fn evaluation(args: EvaluationArgs) -> Result<(), CliError> {
    let pairs = [("since", args.since.as_deref()), ("until", args.until.as_deref())];
    let path = path(&args.company, &format!("evaluation?{}", query(&pairs)));
    let report = Backend::open(&args.company.host).await?.get(&path).await?;
    if args.company.host.json {
        return print_json(&report);
    }
    let mut items = report["bindings"].as_array().cloned().unwrap_or_default();
    items.push(report["total"].clone());
    items.iter_mut().for_each(shorten);
    rows(&items, EVALUATION)?;
    match report["isComplete"] == true {
        true => Ok(()),
        false => line("\nthe hit rate is of the newest operations of these days only"),
    }
}

/// Rates with as many digits as anybody reads.
fn shorten(row: &mut Value) {
    for name in ["recallHitRate", "emptyQueryRate"] {
        if let Some(rate) = row.get(name).and_then(Value::as_f64) {
            row[name] = format!("{rate:.3}").into();
        }
    }
}
