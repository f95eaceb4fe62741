//! The operation and activity logs.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::output::{escape, line, micros, table, text};
use super::{Backend, CliError, CompanyArgs, output};

#[derive(Debug, Subcommand)]
pub(super) enum OperationCommand {
    /// Show operations, newest first.
    List(Box<ListArgs>),
    /// Show one operation with everything that is known of it.
    Show {
        /// Its id.
        id: String,
        #[command(flatten)]
        company: CompanyArgs,
    },
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    company: CompanyArgs,
    /// Of this agent.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// About this issue.
    #[arg(long, value_name = "ID")]
    issue: Option<String>,
    /// In this project.
    #[arg(long, value_name = "ID")]
    project: Option<String>,
    /// In this run.
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// In this session.
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// That this kind of hook caused.
    #[arg(long, value_name = "KIND")]
    hook_kind: Option<String>,
    /// From this kind of source.
    #[arg(long, value_name = "KIND")]
    source_kind: Option<String>,
    /// Of this kind: capture, record_upsert, query, list, get, forget, correct, extraction or control.
    #[arg(long)]
    kind: Option<String>,
    /// With this outcome, such as succeeded or timed_out.
    #[arg(long)]
    outcome: Option<String>,
    /// Of this binding.
    #[arg(long, value_name = "KEY")]
    binding: Option<String>,
    /// Not before this moment, RFC 3339.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Before this moment, RFC 3339.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Where the page before ended.
    #[arg(long)]
    cursor: Option<String>,
    /// At most this many.
    #[arg(long, default_value_t = 20)]
    limit: u32,
}

#[derive(Debug, Args)]
pub(super) struct ActivityArgs {
    #[command(flatten)]
    company: CompanyArgs,
    /// Where the page before ended.
    #[arg(long)]
    cursor: Option<String>,
}

pub(super) async fn run(command: OperationCommand) -> Result<(), CliError> {
    match command {
        OperationCommand::List(args) => list(*args).await,
        OperationCommand::Show { id, company } => {
            let path = format!("/control/v1/companies/{}/operations/{}", escape(&company.company), escape(&id));
            output::json(&Backend::open(&company.host).await?.get(&path).await?)
        }
    }
}

async fn list(args: ListArgs) -> Result<(), CliError> {
    let limit = args.limit.to_string();
    let mut path = format!("/control/v1/companies/{}/operations?limit={limit}", escape(&args.company.company));
    for (name, value) in [
        ("agentId", &args.agent),
        ("issueId", &args.issue),
        ("projectId", &args.project),
        ("runId", &args.run),
        ("sessionKey", &args.session),
        ("hookKind", &args.hook_kind),
        ("sourceKind", &args.source_kind),
        ("kind", &args.kind),
        ("outcome", &args.outcome),
        ("bindingKey", &args.binding),
        ("since", &args.since),
        ("until", &args.until),
        ("cursor", &args.cursor),
    ] {
        if let Some(value) = value {
            path.push_str(&format!("&{name}={}", escape(value)));
        }
    }
    let page = Backend::open(&args.company.host).await?.get(&path).await?;
    if args.company.host.json {
        return output::json(&page);
    }
    print(&page)?;
    match page["nextCursor"].as_str() {
        Some(cursor) => line(&format!("\nmore: --cursor {cursor}")),
        None => Ok(()),
    }
}

pub(super) async fn activity(args: ActivityArgs) -> Result<(), CliError> {
    let cursor = args.cursor.map(|cursor| format!("?cursor={}", escape(&cursor))).unwrap_or_default();
    let path = format!("/control/v1/companies/{}/activity{cursor}", escape(&args.company.company));
    let page = Backend::open(&args.company.host).await?.get(&path).await?;
    if args.company.host.json {
        return output::json(&page);
    }
    let row = |entry: &Value| {
        let at = text(entry, "/at");
        vec![
            at.get(..19).unwrap_or(&at).replace('T', " "),
            text(entry, "/principal"),
            text(entry, "/action").replace('_', " "),
            text(entry, "/subject"),
            changes(&entry["before"], &entry["after"]),
        ]
    };
    let items = page["items"].as_array().cloned().unwrap_or_default();
    table(&["when", "who", "what", "of", "change"], items.iter().map(row).collect())?;
    match page["nextCursor"].as_str() {
        Some(cursor) => line(&format!("\nmore: --cursor {cursor}")),
        None => Ok(()),
    }
}

/// What is different, field by field, without what changes every time.
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
        value => output::clip(&text(value, ""), 60),
    };
    // What was made or taken away as a whole has no path: the page names it already.
    match (path, before.is_object() || after.is_object()) {
        ("", true) => {}
        ("", false) => all.push(format!("{} → {}", shown(before), shown(after))),
        _ => all.push(format!("{path}: {} → {}", shown(before), shown(after))),
    }
}

/// A page as a table.
pub(super) fn print(page: &Value) -> Result<(), CliError> {
    let row = |operation: &Value| {
        let started = text(operation, "/startedAt");
        vec![
            started.get(..19).unwrap_or(&started).replace('T', " "),
            text(operation, "/kind"),
            text(operation, "/outcome"),
            text(operation, "/recordCount"),
            micros(operation.get("latencyUs")),
            text(operation, "/source/kind"),
            text(operation, "/id"),
        ]
    };
    let items = page["items"].as_array().cloned().unwrap_or_default();
    table(&["started", "kind", "outcome", "records", "took", "source", "id"], items.iter().map(row).collect())
}
