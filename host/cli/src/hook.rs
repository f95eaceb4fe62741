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
    /// Show deliveries, newest first.
    List(ListArgs),
    /// Show one delivery.
    Show(ShowArgs),
    /// Deliver an event, JSON from a file or standard input, to the bindings that take it.
    #[command(alias = "deliver")]
    Create(SendArgs),
    /// Try a delivery again that was given up.
    Replay(OneArgs),
}

#[derive(Debug, Subcommand)]
pub(super) enum EventCommand {
    /// Show events, newest first.
    List(EventListArgs),
    /// Tell of what a session or a tool did: one event, or a list, JSON from a file or standard input.
    #[command(alias = "send")]
    Create(SendArgs),
}

#[derive(Debug, Args)]
pub(super) struct SendArgs {
    /// The file; standard input where absent.
    file: Option<PathBuf>,
    #[command(flatten)]
    company: CompanyArgs,
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    page: PageArgs,
    /// Only those in this state: pending, held, delivered, dead or discarded.
    #[arg(long)]
    status: Option<String>,
    /// Only of, or for, this binding.
    #[arg(long, value_name = "KEY")]
    binding: Option<String>,
    /// Only of this kind; for deliveries a kind of hook.
    #[arg(long)]
    kind: Option<String>,
    /// Only of this event.
    #[arg(long, value_name = "ID")]
    hook: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct EventListArgs {
    #[command(flatten)]
    page: PageArgs,
    /// Only in this project.
    #[arg(long, value_name = "ID")]
    project: Option<String>,
    /// Only in this session.
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// Only of this tool.
    #[arg(long, value_name = "ID")]
    tool: Option<String>,
    /// Only of this type, such as tool_call.failed.
    #[arg(long, value_name = "TYPE")]
    r#type: Option<String>,
}

const DELIVERIES: &Columns = &[
    ("received", "/receivedAt"),
    ("kind", "/hook/hookKind"),
    ("hook", "/hook/hookId"),
    ("binding", "/bindingKey"),
    ("status", "/status"),
    ("tries", "/attempts"),
    ("next", "/dueAt"),
    ("why", "/error/message"),
    ("id", "/id"),
];

const EVENTS: &Columns = &[
    ("received", "/receivedAt"),
    ("type", "/type"),
    ("project", "/projectId"),
    ("session", "/sessionId"),
    ("by", "/agentKind"),
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
    read.map_err(|error| CliError::input(&name, format!("{error}; name a file that can be read")))?;
    serde_json::from_str(&text).map_err(|error| CliError::input(&name, format!("is no JSON: {error}")))
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
