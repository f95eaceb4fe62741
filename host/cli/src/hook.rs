//! Hooks and events: sending them, and what became of them.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::CliError;
use super::args::{CompanyArgs, OneArgs, PageArgs, ShowArgs};
use super::page::{self, Columns, items, rows};

#[derive(Debug, Subcommand)]
pub(super) enum HookCommand {
    /// List deliveries, newest first.
    List(ListArgs),
    /// Show a delivery.
    Show(ShowArgs),
    /// Deliver a hook event, JSON from a file or standard input, to subscribed bindings.
    #[command(alias = "deliver")]
    Create(SendArgs),
    /// Retry a delivery in the dead-letter queue.
    Replay(OneArgs),
}

#[derive(Debug, Subcommand)]
pub(super) enum EventCommand {
    /// List events, newest first.
    List(EventListArgs),
    /// Send session or tool events: one or a list, JSON from a file or standard input.
    #[command(alias = "send")]
    Create(SendArgs),
}

#[derive(Debug, Args)]
pub(super) struct SendArgs {
    /// Input file [default: standard input].
    file: Option<PathBuf>,
    #[command(flatten)]
    company: CompanyArgs,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    page: PageArgs,
    /// Filter by status: pending, held, delivered, dead or discarded.
    #[arg(long)]
    status: Option<String>,
    /// Filter by binding key.
    #[arg(long, value_name = "KEY")]
    binding: Option<String>,
    /// Filter by kind; for deliveries the kind of hook.
    #[arg(long)]
    kind: Option<String>,
    /// Filter by event ID.
    #[arg(long, value_name = "ID")]
    hook: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct EventListArgs {
    #[command(flatten)]
    page: PageArgs,
    /// Filter by project ID.
    #[arg(long, value_name = "ID")]
    project: Option<String>,
    /// Filter by session ID.
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// Filter by tool.
    #[arg(long, value_name = "ID")]
    tool: Option<String>,
    /// Filter by type, such as tool_call.failed.
    #[arg(long, value_name = "TYPE")]
    r#type: Option<String>,
}

const DELIVERIES: &Columns = &[
    ("received", "/receivedAt"),
    ("kind", "/hook/hookKind"),
    ("hook", "/hook/hookId"),
    ("binding", "/bindingKey"),
    ("status", "/status"),
    ("attempts", "/attempts"),
    ("due", "/dueAt"),
    ("error", "/error/message"),
    ("id", "/id"),
];

const EVENTS: &Columns = &[
    ("received", "/receivedAt"),
    ("type", "/type"),
    ("project", "/projectId"),
    ("session", "/sessionId"),
    ("agent kind", "/agentKind"),
    ("tool", "/toolId"),
    ("status", "/status"),
    ("ms", "/durationMs"),
    ("error", "/error"),
];

fn read(file: Option<&Path>) -> Result<Value, CliError> {
    let (name, mut text) = (file.map_or("standard input".to_owned(), |file| file.display().to_string()), String::new());
    let read = match file {
        Some(file) => std::fs::read_to_string(file).map(|found| text = found),
        None => std::io::stdin().read_to_string(&mut text).map(drop),
    };
    read.map_err(|error| CliError::input(&name, format!("{error}; give a readable file")))?;
    serde_json::from_str(&text).map_err(|error| CliError::input(&name, format!("is not JSON: {error}")))
}

pub(super) async fn run(command: HookCommand) -> Result<(), CliError> {
    match command {
        HookCommand::List(args) => {
            let filters = [
                ("status", args.status.as_deref()),
                ("bindingKey", args.binding.as_deref()),
                ("hookKind", args.kind.as_deref()),
                ("hookId", args.hook.as_deref()),
            ];
            page::list(&args.page, "deliveries", &filters, DELIVERIES).await
        }
        HookCommand::Show(one) => page::show(&one, "deliveries").await,
        HookCommand::Create(args) => {
            let event = read(args.file.as_deref())?;
            let session = args.company.open().await?;
            let receipt = session.host.post(&session.runtime("hooks"), &event).await?;
            session.show(&receipt, "deliveries", delivered)
        }
        HookCommand::Replay(one) => page::act(&one, "deliveries", "replay", &json!({}), DELIVERIES).await,
    }
}

fn delivered(receipt: &Value) -> String {
    let deliveries = items(receipt, "deliveries");
    if deliveries.is_empty() {
        return "no binding takes this kind of hook; `memhost binding update --policy` makes one take it".to_owned();
    }
    let table = rows(deliveries, DELIVERIES);
    match receipt["context"]["text"].as_str() {
        Some(text) => format!("{table}\n\n{text}"),
        None => table,
    }
}

pub(super) async fn events(command: EventCommand) -> Result<(), CliError> {
    match command {
        EventCommand::List(args) => {
            let filters = [
                ("projectId", args.project.as_deref()),
                ("sessionId", args.session.as_deref()),
                ("toolId", args.tool.as_deref()),
                ("type", args.r#type.as_deref()),
            ];
            page::list(&args.page, "events", &filters, EVENTS).await
        }
        EventCommand::Create(args) => {
            let events = match read(args.file.as_deref())? {
                Value::Array(events) => events,
                event => vec![event],
            };
            let session = args.company.open().await?;
            let answer = session.host.post(&session.runtime("events"), &json!({ "events": events })).await?;
            session.show(&answer, "items", |answer| rows(items(answer, "items"), EVENTS))
        }
    }
}
