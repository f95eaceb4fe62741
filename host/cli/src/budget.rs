//! `memhost budget`: budgets of a company and of its bindings.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::CliError;
use super::args::{CompanyArgs, PageArgs, WatchArgs};
use super::argument::name;
use super::output::{details, escape};
use super::page::{self, Columns, items, rows};
use super::session::Session;

#[derive(Debug, Subcommand)]
pub(super) enum BudgetCommand {
    /// List budgets with their current spending.
    List(PageArgs),
    /// Show a budget with its current spending.
    Show {
        #[command(flatten)]
        which: WhichArgs,
        #[command(flatten)]
        watch: WatchArgs,
    },
    /// Create a budget. At its limit, operations that may cost something are refused until the next
    /// period.
    Create(CreateArgs),
    /// Update a budget.
    Update {
        #[command(flatten)]
        which: WhichArgs,
        /// Amount in cents.
        #[arg(long, value_name = "CENTS")]
        cents: Option<f64>,
        /// Warn when this share is spent [default: 0.8].
        #[arg(long, value_name = "SHARE")]
        warn: Option<f64>,
    },
    /// Delete a budget.
    Delete(WhichArgs),
}

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    #[command(flatten)]
    which: WhichArgs,
    /// Amount in cents.
    #[arg(long, value_name = "CENTS")]
    cents: f64,
    /// Warn when this share is spent [default: 0.8].
    #[arg(long, value_name = "SHARE")]
    warn: Option<f64>,
}

#[derive(Debug, Args)]
pub(super) struct WhichArgs {
    #[command(flatten)]
    company: CompanyArgs,
    /// Budget period.
    #[arg(long, value_enum, default_value_t = Period::Month)]
    period: Period,
    /// Binding that the budget is for [default: all].
    #[arg(long, value_name = "KEY")]
    binding: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Period {
    /// One day, in UTC.
    Day,
    /// One calendar month, in UTC.
    Month,
}

const WARN: f64 = 0.8;

const BUDGETS: &Columns = &[
    ("binding", "/bindingKey"),
    ("period", "/period"),
    ("limit", "/limitCents"),
    ("spent", "/spentCents"),
    ("state", "/state"),
    ("resets", "/resetsAt"),
];

impl WhichArgs {
    fn path(&self) -> String {
        let budget = format!("budgets/{}", name(&self.period));
        self.binding
            .as_ref()
            .map_or_else(|| budget.clone(), |key| format!("bindings/{}/{budget}", escape(key)))
    }

    /// The budget's name in messages.
    fn name(&self) -> String {
        let period = name(&self.period);
        self.binding.as_ref().map_or_else(|| period.clone(), |key| format!("{period} of {key}"))
    }

    async fn find(&self, session: &Session) -> Result<Option<Value>, CliError> {
        let answer = session.get("budgets").await?;
        let is_it = |budget: &&Value| {
            budget["period"] == name(&self.period)
                && budget["bindingKey"].as_str() == self.binding.as_deref()
        };
        Ok(items(&answer, "items").iter().find(is_it).cloned())
    }

    async fn found(&self, session: &Session) -> Result<Value, CliError> {
        self.find(session).await?.ok_or_else(|| page::missing("budget", &self.name()))
    }
}

pub(super) async fn run(command: BudgetCommand) -> Result<(), CliError> {
    match command {
        BudgetCommand::List(page) => page::list(&page, "budgets", &[], BUDGETS).await,
        BudgetCommand::Show { which, watch } => {
            let session = which.company.open().await?;
            page::watch(&session, &watch, "", async || which.found(&session).await, details).await
        }
        BudgetCommand::Create(CreateArgs { which, cents, warn }) => {
            let session = which.company.open().await?;
            if which.find(&session).await?.is_some() {
                return Err(CliError::exists("budget", &which.name()));
            }
            put(&session, &which, &cents.into(), &warn.unwrap_or(WARN).into()).await
        }
        BudgetCommand::Update { which, cents, warn } => {
            let session = which.company.open().await?;
            let found = which.found(&session).await?;
            let cents = cents.map_or_else(|| found["limitCents"].clone(), Value::from);
            let warn = warn.map_or_else(|| found["warnShare"].clone(), Value::from);
            put(&session, &which, &cents, &warn).await
        }
        BudgetCommand::Delete(which) => {
            let session = which.company.open().await?;
            let answer = session.delete(&which.path()).await?;
            session.gone(&answer, &format!("deleted the budget {}", which.name()))
        }
    }
}

/// The host answers with all budgets.
async fn put(
    session: &Session,
    which: &WhichArgs,
    cents: &Value,
    warn: &Value,
) -> Result<(), CliError> {
    let answer =
        session.put(&which.path(), &json!({ "limitCents": cents, "warnShare": warn })).await?;
    session.show(&answer, "items", |answer| rows(items(answer, "items"), BUDGETS))
}
