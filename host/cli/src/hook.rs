//! `memhost hook` and `event`: sends hooks and events, and lists them and their deliveries.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::args::{CompanyArgs, OneArgs, PageArgs, ShowArgs, filters};
use super::page::{self, Columns, items, rows};
use super::{CliError, argument};

#[derive(Debug, Subcommand)]
pub(super) enum HookCommand {
    /// List deliveries, newest first.
    List {
        #[command(flatten)]
        page: PageArgs,
        #[command(flatten)]
        filters: DeliveryFilters,
    },
    /// Show a delivery.
    Show(ShowArgs),
    /// Deliver a hook event, JSON from a file or standard input, to subscribed bindings.
    Create(SendArgs),
    /// Retry a delivery in the dead-letter queue.
    Replay(OneArgs),
}

#[derive(Debug, Subcommand)]
pub(super) enum EventCommand {
    /// List events, newest first.
    List {
        #[command(flatten)]
        page: PageArgs,
        #[command(flatten)]
        filters: EventFilters,
    },
    /// Send session or tool events: one or a list, JSON from a file or standard input.
    Create(SendArgs),
}

#[derive(Debug, Args)]
pub(super) struct SendArgs {
    /// Input file [default: standard input].
    file: Option<PathBuf>,
    #[command(flatten)]
    company: CompanyArgs,
}

filters! { DeliveryFilters {
    status = "status", "Filter by status: pending, held, delivered, dead or discarded.";
    binding<"KEY"> = "bindingKey", "Filter by binding key.";
    kind = "hookKind", "Filter by kind; for deliveries the kind of hook.";
    hook<"ID"> = "hookId", "Filter by event ID.";
} }

filters! { EventFilters {
    project<"ID"> = "projectId", "Filter by project ID.";
    session<"KEY"> = "sessionId", "Filter by session ID.";
    tool<"ID"> = "toolId", "Filter by tool.";
    r#type<"TYPE"> = "type", "Filter by type, such as tool_call.failed.";
} }

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
    let name = file.map_or("standard input".to_owned(), |file| file.display().to_string());
    argument::json(&name, &argument::input(file)?)
}

pub(super) async fn run(command: HookCommand) -> Result<(), CliError> {
    match command {
        HookCommand::List { page, filters } => page::list(&page, "deliveries", &filters.parameters(), DELIVERIES).await,
        HookCommand::Show(args) => page::show(&args.one.company, &args.watch, "deliveries", &args.one.id).await,
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
        return "no binding subscribes to this kind of hook; subscribe one with `memhost binding update KEY --policy JSON`".to_owned();
    }
    let table = rows(deliveries, DELIVERIES);
    match receipt["context"]["text"].as_str() {
        Some(text) => format!("{table}\n\n{text}"),
        None => table,
    }
}

pub(super) async fn events(command: EventCommand) -> Result<(), CliError> {
    match command {
        EventCommand::List { page, filters } => page::list(&page, "events", &filters.parameters(), EVENTS).await,
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
