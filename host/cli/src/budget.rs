//! Manage budgets.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::CliError;
use super::args::{CompanyArgs, PageArgs, WatchArgs};
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
    /// Create a budget. A spent budget blocks all operations until the next period.
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
    /// Create or update a budget.
    #[command(hide = true)]
    Set(CreateArgs),
    /// Delete a budget.
    #[command(alias = "remove")]
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
    fn period(&self) -> &'static str {
        match self.period {
            Period::Day => "day",
            Period::Month => "month",
        }
    }

    fn path(&self) -> String {
        match &self.binding {
            Some(key) => format!("bindings/{}/budgets/{}", escape(key), self.period()),
            None => format!("budgets/{}", self.period()),
        }
    }

    /// Description.
    fn name(&self) -> String {
        let period = self.period();
        self.binding.as_ref().map_or_else(|| period.to_owned(), |key| format!("{period} of {key}"))
    }

    async fn find(&self, session: &Session) -> Result<Option<Value>, CliError> {
        let answer = session.get("budgets").await?;
        let is_it = |budget: &&Value| {
            budget["period"] == self.period() && budget["bindingKey"].as_str() == self.binding.as_deref()
        };
        Ok(items(&answer, "items").iter().find(is_it).cloned())
    }
}

pub(super) async fn run(command: BudgetCommand) -> Result<(), CliError> {
    match command {
        BudgetCommand::List(page) => page::list(&page, "budgets", &[], BUDGETS).await,
        BudgetCommand::Show { which, watch } => {
            let session = which.company.open().await?;
            let look = async || {
                let found = which.find(&session).await?.ok_or_else(|| page::missing("budget", &which.name()))?;
                session.format.render(&found, "", details)
            };
            page::watched(&watch, look).await
        }
        BudgetCommand::Create(CreateArgs { which, cents, warn }) => {
            let session = which.company.open().await?;
            if which.find(&session).await?.is_some() {
                let detail = format!("the budget `{}` exists; change it with `memhost budget update`", which.name());
                return Err(CliError::Problem { status: 409, detail, operation: None });
            }
            put(&session, &which, &cents.into(), &warn.unwrap_or(WARN).into()).await
        }
        BudgetCommand::Set(CreateArgs { which, cents, warn }) => {
            let session = which.company.open().await?;
            put(&session, &which, &cents.into(), &warn.unwrap_or(WARN).into()).await
        }
        BudgetCommand::Update { which, cents, warn } => {
            let session = which.company.open().await?;
            let found = which.find(&session).await?.ok_or_else(|| page::missing("budget", &which.name()))?;
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
async fn put(session: &Session, which: &WhichArgs, cents: &Value, warn: &Value) -> Result<(), CliError> {
    let answer = session.put(&which.path(), &json!({ "limitCents": cents, "warnShare": warn })).await?;
    session.show(&answer, "items", |answer| rows(items(answer, "items"), BUDGETS))
}
