//! Hooks and events: sending them, and what became of them.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::output::{escape, json as print_json, line};
use super::page::{self, Columns, OneArgs, PageArgs};
use super::{Backend, CliError, CompanyArgs};

#[derive(Debug, Subcommand)]
pub(super) enum HookCommand {
    /// Deliver an event, JSON from a file or standard input, to the bindings that take it.
    Deliver(SendArgs),
    /// Show deliveries, newest first.
    List(ListArgs),
    /// Show one delivery.
    Show(OneArgs),
    /// Try a delivery again that was given up.
    Replay(OneArgs),
}

#[derive(Debug, Subcommand)]
pub(super) enum EventCommand {
    /// Tell of what a session or a tool did: one event, or a list, JSON from a file or standard input.
    Send(SendArgs),
    /// Show events, newest first.
    List(EventListArgs),
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
    /// Only those that are pending, held, delivered, dead or discarded.
    #[arg(long)]
    status: Option<String>,
    /// Only to this binding.
    #[arg(long, value_name = "KEY")]
    binding: Option<String>,
    /// Only of this kind of hook.
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
    /// Only of this project.
    #[arg(long, value_name = "ID")]
    project: Option<String>,
    /// Only of this session.
    #[arg(long, value_name = "ID")]
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

fn runtime(company: &CompanyArgs, rest: &str) -> String {
    format!("/runtime/v1/companies/{}/{rest}", escape(&company.company))
}

pub(super) async fn run(command: HookCommand) -> Result<(), CliError> {
    match command {
        HookCommand::Deliver(args) => deliver(args).await,
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
        HookCommand::Replay(one) => page::act(&one, "deliveries", "replay", &json!({}), DELIVERIES).await,
    }
}

async fn deliver(args: SendArgs) -> Result<(), CliError> {
    let event = read(args.file.as_deref())?;
    let receipt = Backend::open(&args.company.host).await?.post(&runtime(&args.company, "hooks"), &event).await?;
    if args.company.host.json {
        return print_json(&receipt);
    }
    let deliveries = receipt["deliveries"].as_array().cloned().unwrap_or_default();
    if deliveries.is_empty() {
        return line("no binding takes this kind of hook; `memhost binding set --policy` makes one take it");
    }
    page::rows(&deliveries, DELIVERIES)?;
    match receipt["context"]["text"].as_str() {
        Some(text) => line(&format!("\n{text}")),
        None => Ok(()),
    }
}

pub(super) async fn events(command: EventCommand) -> Result<(), CliError> {
    match command {
        EventCommand::Send(args) => {
            let events = match read(args.file.as_deref())? {
                Value::Array(events) => events,
                event => vec![event],
            };
            let host = Backend::open(&args.company.host).await?;
            let answer = host.post(&runtime(&args.company, "events"), &json!({ "events": events })).await?;
            match args.company.host.json {
                true => print_json(&answer),
                false => page::rows(answer["items"].as_array().map_or(&[], Vec::as_slice), EVENTS),
            }
        }
        EventCommand::List(args) => {
            let filters = [
                ("projectId", args.project.as_deref()),
                ("sessionId", args.session.as_deref()),
                ("toolId", args.tool.as_deref()),
                ("type", args.r#type.as_deref()),
            ];
            page::list(&args.page, "events", &filters, EVENTS).await
        }
    }
}
