//! The operation and activity logs.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::CliError;
use super::args::{PageArgs, ShowArgs};
use super::output::{clip, micros, moment, table, text};
use super::page::{self, Asked, items, query};

#[derive(Debug, Subcommand)]
pub(super) enum OperationCommand {
    /// List operations, newest first.
    List(Box<ListArgs>),
    /// Show all fields of an operation.
    Show(Box<ShowArgs>),
}

#[derive(Debug, Subcommand)]
pub(super) enum ActivityCommand {
    /// List changes, newest first.
    List(PageArgs),
}

/// The activity command; `list` is its default.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct ActivityArgs {
    #[command(subcommand)]
    command: Option<ActivityCommand>,
    #[command(flatten)]
    page: PageArgs,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    page: PageArgs,
    /// Filter by agent ID.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Filter by issue ID.
    #[arg(long, value_name = "ID")]
    issue: Option<String>,
    /// Filter by project ID.
    #[arg(long, value_name = "ID")]
    project: Option<String>,
    /// Filter by run ID.
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Filter by session ID.
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// Filter by the kind of hook that caused it.
    #[arg(long, value_name = "KIND")]
    hook_kind: Option<String>,
    /// Filter by the kind of source.
    #[arg(long, value_name = "KIND")]
    source_kind: Option<String>,
    /// Filter by kind: capture, record_upsert, query, list, get, forget, correct, extraction or control.
    #[arg(long)]
    kind: Option<String>,
    /// Filter by outcome, such as succeeded or timed_out.
    #[arg(long)]
    outcome: Option<String>,
    /// Filter by binding key.
    #[arg(long, value_name = "KEY")]
    binding: Option<String>,
    /// Only items at or after this time, RFC 3339.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only items before this time, RFC 3339.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

pub(super) async fn run(command: OperationCommand) -> Result<(), CliError> {
    match command {
        OperationCommand::List(args) => list(*args).await,
        OperationCommand::Show(args) => page::show(&args, "operations").await,
    }
}

async fn list(args: ListArgs) -> Result<(), CliError> {
    let filters = [
        ("agentId", args.agent.as_deref()),
        ("issueId", args.issue.as_deref()),
        ("projectId", args.project.as_deref()),
        ("runId", args.run.as_deref()),
        ("sessionKey", args.session.as_deref()),
        ("hookKind", args.hook_kind.as_deref()),
        ("sourceKind", args.source_kind.as_deref()),
        ("kind", args.kind.as_deref()),
        ("outcome", args.outcome.as_deref()),
        ("bindingKey", args.binding.as_deref()),
        ("since", args.since.as_deref()),
        ("until", args.until.as_deref()),
    ];
    page::list_as(&args.page, "operations", &filters, rows).await
}

pub(super) async fn activity(args: ActivityArgs) -> Result<(), CliError> {
    let page = match args.command {
        Some(ActivityCommand::List(page)) => page,
        None => args.page,
    };
    let session = page.company.open().await?;
    // Pages of this list are as long as the host makes them; what was asked for is cut out of them.
    let fetch =
        async |asked: Asked| session.get(&format!("activity?{}", query(&[("cursor", asked.cursor.as_deref())]))).await;
    page::pages(session.format, &page.paging, "items", fetch, activities).await
}

fn activities(page: &Value) -> String {
    let row = |entry: &Value| {
        vec![
            moment(&text(entry, "/at")),
            text(entry, "/principal"),
            text(entry, "/action").replace('_', " "),
            text(entry, "/subject"),
            changes(&entry["before"], &entry["after"]),
        ]
    };
    table(&["time", "actor", "action", "object", "change"], items(page, "items").iter().map(row).collect())
}

/// The changed fields, without those that every change sets.
fn changes(before: &Value, after: &Value) -> String {
    let mut all = Vec::new();
    collect_changes("", before, after, &mut all);
    all.join("; ")
}

fn collect_changes(path: &str, before: &Value, after: &Value, all: &mut Vec<String>) {
    if before == after {
        return;
    }
    if let (Some(old), Some(new)) = (before.as_object(), after.as_object()) {
        let names = new.keys().chain(old.keys().filter(|name| !new.contains_key(*name)));
        for name in names.filter(|name| !matches!(name.as_str(), "revision" | "updatedAt" | "digest")) {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            collect_changes(&path, &before[name], &after[name], all);
        }
        return;
    }
    let shown = |value: &Value| match value {
        Value::Null => "nothing".to_owned(),
        value => clip(&text(value, ""), 60),
    };
    // What was made or taken away as a whole has no path: the page names it already.
    match (path, before.is_object() || after.is_object()) {
        ("", true) => {}
        ("", false) => all.push(format!("{} → {}", shown(before), shown(after))),
        _ => all.push(format!("{path}: {} → {}", shown(before), shown(after))),
    }
}

/// A page as a table.
pub(super) fn rows(page: &Value) -> String {
    let row = |operation: &Value| {
        vec![
            moment(&text(operation, "/startedAt")),
            text(operation, "/kind"),
            text(operation, "/outcome"),
            text(operation, "/recordCount"),
            micros(operation.get("latencyUs")),
            text(operation, "/source/kind"),
            text(operation, "/id"),
        ]
    };
    let rows = items(page, "items").iter().map(row).collect();
    table(&["started", "kind", "outcome", "records", "duration", "source", "id"], rows)
}
