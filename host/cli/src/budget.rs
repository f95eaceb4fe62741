//! `memhost budget`: budgets of a company and of its bindings.

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::json;

use super::answer::Answer;
use super::args::{CompanyArgs, PageArgs, WatchArgs};
use super::argument::{confirm, name, nothing_to_change};
use super::page::{self, Columns, rows};
use super::session::Session;
use super::texts::{cell, escape, moment};
use super::{CliError, Result};
use memhost_http::api::Items;
use memhost_types::{BindingKey, BudgetView, SetBudget};

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
    #[command(mut_arg("limitCents", |arg| arg.required(true)))]
    Create(SetArgs),
    /// Update a budget.
    Update(SetArgs),
    /// Delete a budget.
    Delete(WhichArgs),
}

#[derive(Debug, Args)]
pub(super) struct SetArgs {
    #[command(flatten)]
    which: WhichArgs,
    /// Amount in cents.
    #[arg(long, value_name = "CENTS", id = "limitCents")]
    cents: Option<f64>,
    /// Warn when this share is spent [default: 0.8].
    #[arg(long, value_name = "SHARE", id = "warnShare")]
    warn: Option<f64>,
    /// Do it without asking.
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
pub(super) struct WhichArgs {
    #[command(flatten)]
    company: CompanyArgs,
    /// Budget period.
    #[arg(long, value_enum, default_value_t = Period::Month)]
    period: Period,
    /// Binding that the budget is for [default: all].
    #[arg(long, value_name = "KEY", id = "bindingKey")]
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

const BUDGETS: &Columns<BudgetView> = &[
    ("binding", |view| cell(&view.budget.binding_key)),
    ("period", |view| cell(&view.budget.period)),
    ("limit", |view| cell(&view.budget.set.limit)),
    ("spent", |view| cell(&view.spent)),
    ("state", |view| cell(&view.state)),
    ("resets", |view| moment(view.resets_at)),
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

    async fn find(&self, session: &Session) -> Result<Option<Answer<BudgetView>>> {
        let all: Answer<Items<BudgetView>> = session.get("budgets").await?;
        all.find(|BudgetView { budget, .. }| {
            let binding = budget.binding_key.as_ref().map(BindingKey::as_str);
            budget.period.as_str() == name(&self.period) && binding == self.binding.as_deref()
        })
    }

    async fn found(&self, session: &Session) -> Result<Answer<BudgetView>> {
        self.find(session).await?.ok_or_else(|| page::missing("budget", &self.name()))
    }
}

pub(super) async fn run(command: BudgetCommand) -> Result<()> {
    match command {
        BudgetCommand::List(page) => {
            page::list_as(&page, "budgets", &[], |all: &Items<_>| rows(&all.items, BUDGETS)).await
        }
        BudgetCommand::Show { which, watch } => {
            let session = which.company.open().await?;
            page::watch_details(&session, &watch, async || which.found(&session).await).await
        }
        BudgetCommand::Create(SetArgs { which, cents, warn, yes }) => {
            let session = which.company.open().await?;
            confirm_stop(&session, &which, cents, yes)?;
            if which.find(&session).await?.is_some() {
                return Err(CliError::exists("budget", &which.name()));
            }
            put(&session, &which, cents, warn.unwrap_or(WARN)).await
        }
        BudgetCommand::Update(SetArgs { cents: None, warn: None, .. }) => {
            Err(nothing_to_change("--cents and --warn"))
        }
        BudgetCommand::Update(SetArgs { which, cents, warn, yes }) => {
            let session = which.company.open().await?;
            confirm_stop(&session, &which, cents, yes)?;
            let SetBudget { limit, warn_share } = which.found(&session).await?.read()?.budget.set;
            let warn = warn.unwrap_or(warn_share);
            match cents {
                Some(cents) => put(&session, &which, cents, warn).await,
                None => put(&session, &which, limit, warn).await,
            }
        }
        BudgetCommand::Delete(which) => {
            let session = which.company.open().await?;
            let answer = session.delete(&which.path()).await?;
            session.gone(&answer, &format!("deleted the budget {}", which.name()))
        }
    }
}

/// Asks where an amount leaves nothing to spend.
fn confirm_stop(session: &Session, which: &WhichArgs, cents: Option<f64>, yes: bool) -> Result<()> {
    if cents != Some(0.0) {
        return Ok(());
    }
    let of = match &which.binding {
        Some(key) => format!("the binding {key}"),
        None => format!("the company {}", session.company),
    };
    let question = format!(
        "A budget of 0 cents stops {of}: every operation that may cost something is refused until \
         the budget is changed. Set it?"
    );
    confirm(yes, &question)
}

/// The host answers with all budgets.
async fn put(session: &Session, which: &WhichArgs, cents: impl Serialize, warn: f64) -> Result<()> {
    let body = json!({ "limitCents": cents, "warnShare": warn });
    let answer = session.put(&which.path(), &body).await?;
    session.show_list(&answer, |all: &Items<BudgetView>| rows(&all.items, BUDGETS))
}
