//! `memhost hook` and `event`: sends hooks and events, and lists them and their deliveries.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::args::{CompanyArgs, OneArgs, PageArgs, ShowArgs, filters};
use super::argument::{one_of, time};
use super::page::{self, Columns, rows};
use super::texts::{cell, moment};
use super::{Result, argument};
use memhost_http::api::Items;
use memhost_types::{Delivery, DeliveryStatus, Event, HookReceipt};

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
    /// Send a hook, JSON from a file or standard input, to subscribed bindings.
    Create(SendArgs),
    /// Retry a dead delivery, or all that match.
    Replay(ManyArgs),
    /// Give up a dead or pending delivery, or all that match.
    Discard(ManyArgs),
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

/// One delivery, or several.
#[derive(Debug, Args)]
pub(super) struct ManyArgs {
    /// The ID [default: every delivery that the filters match].
    #[arg(id = "deliveryId", value_name = "ID")]
    id: Option<String>,
    /// All of the company, without a filter.
    #[arg(long, conflicts_with = "deliveryId")]
    every: bool,
    #[command(flatten)]
    filters: DeliveryFilters,
    #[command(flatten)]
    company: CompanyArgs,
}

#[derive(Debug, Args)]
pub(super) struct SendArgs {
    /// Input file [default: standard input].
    file: Option<PathBuf>,
    #[command(flatten)]
    company: CompanyArgs,
}

filters! { DeliveryFilters {
    status<"STATUS"> [one_of(DeliveryStatus::ALL, DeliveryStatus::as_str)] = "status",
        "Filter by status.";
    binding<"KEY"> = "bindingKey", "Filter by binding key.";
    kind<"KIND"> = "hookKind", "Filter by kind of hook.";
    hook<"ID"> = "hookId", "Filter by hook ID.";
    agent<"ID"> = "agentId", "Filter by agent ID.";
    issue<"ID"> = "issueId", "Filter by issue ID.";
    run<"ID"> = "runId", "Filter by run ID.";
    since<"TIME"> [time] = "since", "Only items at or after this time, RFC 3339.";
    until<"TIME"> [time] = "until", "Only items before this time, RFC 3339.";
} }

filters! { EventFilters {
    project<"ID"> = "projectId", "Filter by project ID.";
    session<"KEY"> = "sessionId", "Filter by session ID.";
    tool<"ID"> = "toolId", "Filter by tool.";
    r#type<"TYPE"> [EVENT_TYPES] = "type", "Filter by type.";
} }

/// Types of events.
const EVENT_TYPES: [&str; 8] = [
    "session.started",
    "session.stopped",
    "tool_call.started",
    "tool_call.succeeded",
    "tool_call.failed",
    "tool_call.ended",
    "memory.saved",
    "memory.recalled",
];

const DELIVERIES: &Columns<Delivery> = &[
    ("received", |delivery| moment(delivery.received_at)),
    ("kind", |delivery| cell(&delivery.hook.hook_kind)),
    ("hook", |delivery| cell(&delivery.hook.hook_id)),
    ("binding", |delivery| cell(&delivery.binding_key)),
    ("status", |delivery| cell(&delivery.status)),
    ("attempts", |delivery| cell(&delivery.attempts)),
    ("due", |delivery| moment(delivery.due_at)),
    ("error", |delivery| {
        let degraded = delivery.recall.as_ref().and_then(|recall| recall.degraded.as_ref());
        cell(&delivery.error.as_ref().map(|error| &error.message).or(degraded))
    }),
    ("id", |delivery| cell(&delivery.id)),
];

const EVENTS: &Columns<Event> = &[
    ("received", |event| moment(event.received_at)),
    ("type", |event| cell(&event.event.r#type)),
    ("project", |event| cell(&event.event.project_id)),
    ("session", |event| cell(&event.event.session_id)),
    ("agent kind", |event| cell(&event.event.agent_kind)),
    ("tool", |event| cell(&event.event.tool_id)),
    ("status", |event| cell(&event.event.status)),
    ("ms", |event| cell(&event.event.duration_ms)),
    ("error", |event| cell(&event.event.error)),
];

fn read(file: Option<&Path>) -> Result<Value> {
    let name = file.map_or("standard input".to_owned(), |file| file.display().to_string());
    argument::json(&name, &argument::input(file)?)
}

pub(super) async fn run(command: HookCommand) -> Result<()> {
    match command {
        HookCommand::List { page, filters } => {
            page::list(&page, "deliveries", &filters.parameters(), DELIVERIES).await
        }
        HookCommand::Show(args) => {
            page::show(&args.one.company, &args.watch, "deliveries", &args.one.id).await
        }
        HookCommand::Create(args) => {
            let event = read(args.file.as_deref())?;
            let session = args.company.open().await?;
            let receipt = session.host.post(&session.runtime("hooks"), &event).await?;
            session.show_list(&receipt, delivered)
        }
        HookCommand::Replay(many) => turn(many, "replay", "replayed").await,
        HookCommand::Discard(many) => turn(many, "discard", "discarded").await,
    }
}

/// Replays or discards one delivery, or all that match.
async fn turn(many: ManyArgs, action: &str, did: &str) -> Result<()> {
    let ManyArgs { id, every, filters, company } = many;
    match id {
        Some(id) => {
            page::act(&OneArgs { id, company }, "deliveries", action, &json!({}), DELIVERIES).await
        }
        None => {
            page::act_on_all(&company, every, "deliveries", action, &filters.parameters(), did)
                .await
        }
    }
}

fn delivered(receipt: &HookReceipt) -> String {
    if receipt.deliveries.is_empty() {
        let reason = receipt.not_taken.as_ref().map(|why| why.reason.as_str());
        return reason.unwrap_or("no binding takes it").to_owned();
    }
    let table = rows(&receipt.deliveries, DELIVERIES);
    match &receipt.context {
        Some(context) => format!("{table}\n\n{}", context.text),
        None => table,
    }
}

pub(super) async fn events(command: EventCommand) -> Result<()> {
    match command {
        EventCommand::List { page, filters } => {
            page::list(&page, "events", &filters.parameters(), EVENTS).await
        }
        EventCommand::Create(args) => {
            let events = match read(args.file.as_deref())? {
                Value::Array(events) => events,
                event => vec![event],
            };
            let session = args.company.open().await?;
            let body = json!({ "events": events });
            let answer = session.host.post(&session.runtime("events"), &body).await?;
            session.show_list(&answer, |answer: &Items<Event>| rows(&answer.items, EVENTS))
        }
    }
}
