//! `memhost tail`: shows operations as they happen.

mod sse;

use std::collections::{HashSet, VecDeque};
use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc;

pub(super) use self::sse::Event;
use self::sse::Parser;
use super::args::CompanyArgs;
use super::argument::one_of;
use super::output::{Format, is_plain, line};
use super::session::Session;
use super::texts::{clip, micros, provenance, text};
use super::{Backend, CliError, Result, answer};
use memhost_types::{
    AgentId, BindingKey, BudgetView, Job, Operation, OperationKind, Outcome, PluginChange,
    PluginOutcome, counted,
};

#[derive(Debug, Args)]
pub(super) struct TailArgs {
    #[command(flatten)]
    company: CompanyArgs,
    /// Show all companies of the host; requires an operator token.
    #[arg(long)]
    everywhere: bool,
    /// Event kinds to show; repeatable.
    #[arg(long, value_enum, default_value = "operation", value_name = "WHAT")]
    event: Vec<What>,
    /// Filter by kind of operation.
    #[arg(
        long, value_name = "KIND", value_parser = one_of(OperationKind::ALL, OperationKind::as_str)
    )]
    kind: Option<String>,
    /// Filter by outcome.
    #[arg(long, value_name = "OUTCOME", value_parser = one_of(Outcome::ALL, Outcome::as_str))]
    outcome: Option<String>,
    /// Filter by binding key.
    #[arg(long, value_name = "KEY")]
    binding: Option<String>,
    /// Filter by agent ID.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// Finished operations.
    Operation,
    /// Changed extraction jobs.
    Job,
    /// Added and removed plugin files; requires --everywhere.
    Plugin,
    /// Changed budgets.
    Budget,
}

/// Waiting times between attempts to reconnect, from the first to the last.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

pub(super) async fn run(args: TailArgs) -> Result<()> {
    let session = match args.everywhere {
        true => args.company.host.open().await?,
        false => args.company.open().await?,
    };
    let path =
        if args.everywhere { "/control/v1/stream".to_owned() } else { session.path("stream") };
    let (sender, mut events) = mpsc::channel(256);
    let Session { host, format, .. } = session;
    // A thread of its own: it may block in a read for hours, and is not waited for at the end.
    std::thread::spawn(move || follow(&host, &path, &sender));
    let mut seen = Seen::default();
    let stopped = crate::signals::stop();
    tokio::pin!(stopped);
    loop {
        let event = tokio::select! {
            () = &mut stopped => return Ok(()),
            event = events.recv() => event,
        };
        let Some(event) = event.transpose()? else { return Ok(()) };
        if event.name == "reset" {
            eprintln!("some events were lost; `memhost operation list` shows all operations");
            continue;
        }
        // A kind of event that this version does not know.
        let Some(happened) = Happened::read(&event)? else { continue };
        let is_new = match &happened {
            Happened::Operation(operation) => seen.is_new(&text(&operation.id)),
            _ => true,
        };
        if is_new && args.lets_through(&happened) {
            line(&shown(format, &event, &happened)?)?;
        }
    }
}

/// The latest operations of the stream. A host repeats some of them after a restart.
#[derive(Default)]
struct Seen {
    known: HashSet<String>,
    order: VecDeque<String>,
}

impl Seen {
    /// Twice the number that a host repeats.
    const MOST: usize = 2_000;

    fn is_new(&mut self, id: &str) -> bool {
        if !self.known.insert(id.to_owned()) {
            return false;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > Self::MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

impl TailArgs {
    fn lets_through(&self, happened: &Happened) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.is_none() || wanted.as_deref() == found
        };
        let (what, kind, outcome, binding, agent) = match happened {
            Happened::Operation(operation) => (
                What::Operation,
                Some(operation.kind.as_str()),
                Some(operation.outcome.as_str()),
                operation.binding_key.as_ref(),
                operation.scope.agent_id.as_ref(),
            ),
            Happened::Job(job) => {
                (What::Job, None, None, Some(&job.binding_key), job.scope.agent_id.as_ref())
            }
            Happened::Budget(view) => {
                (What::Budget, None, None, view.budget.binding_key.as_ref(), None)
            }
            Happened::Plugin(_) => (What::Plugin, None, None, None, None),
        };
        self.event.contains(&what)
            && is(&self.kind, kind)
            && is(&self.outcome, outcome)
            && is(&self.binding, binding.map(BindingKey::as_str))
            && is(&self.agent, agent.map(AgentId::as_str))
    }
}

/// What an event tells.
enum Happened {
    Operation(Box<Operation>),
    Job(Box<Job>),
    Budget(Box<BudgetView>),
    Plugin(PluginChange),
}

impl Happened {
    /// `None`: it is of a kind that this version does not know.
    fn read(event: &Event) -> Result<Option<Self>> {
        Ok(Some(match event.name.as_str() {
            "operation" => Self::Operation(event.read()?),
            "job" => Self::Job(event.read()?),
            "budget" => Self::Budget(event.read()?),
            "plugin" => Self::Plugin(event.read()?),
            _ => return Ok(None),
        }))
    }
}

impl Event {
    /// Its data as a type.
    ///
    /// # Errors
    /// If the host is of a version that tells something else.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T> {
        answer::read(&self.json()?)
    }

    fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.data)
            .map_err(|error| CliError::Host(format!("the host's event is not JSON: {error}")))
    }
}

/// Reads the stream and reconnects after a break. Ends where the receiver is gone or the host
/// refuses.
pub(super) fn follow(host: &Backend, path: &str, sender: &mpsc::Sender<Result<Event>>) {
    let (mut parser, mut wait, mut was_open) = (Parser::default(), FIRST_WAIT, false);
    loop {
        match host.stream(path, parser.last_id()) {
            Ok(stream) => {
                (was_open, wait) = (true, FIRST_WAIT);
                if !read(stream, &mut parser, sender) {
                    return;
                }
            }
            // A host that was reached before may restart. Another error is final.
            Err(error) if was_open && error.exit_code() == 5 => {
                tracing::debug!(%error, "the stream is lost");
            }
            Err(error) => return drop(sender.blocking_send(Err(error))),
        }
        std::thread::sleep(wait);
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// Whether to reconnect after the end of the stream.
fn read(stream: impl Read, parser: &mut Parser, sender: &mpsc::Sender<Result<Event>>) -> bool {
    parser.restart();
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return true };
        if let Some(event) = parser.line(&line)
            && sender.blocking_send(Ok(event)).is_err()
        {
            return false;
        }
    }
    !sender.is_closed()
}

fn shown(format: Format, event: &Event, happened: &Happened) -> Result<String> {
    match (format, happened) {
        (Format::Table, Happened::Operation(happened)) => Ok(operation(happened, is_plain())),
        (Format::Table, happened) => Ok(other(&event.name, happened)),
        (Format::Json | Format::Jsonl, _) => Ok(event.json()?.to_string()),
        // Each document of a stream begins with `---`.
        (Format::Yaml, _) => {
            Ok(format!("---\n{}", format.render(&event.json()?, "", || Ok(String::new()))?))
        }
    }
}

/// One line: time, outcome, kind, binding, agent, duration, cost and records.
pub(super) fn operation(operation: &Operation, is_plain: bool) -> String {
    let at = operation.finished_at.unwrap_or(operation.started_at);
    let outcome = format!("{:<11}", operation.outcome);
    let outcome = match (is_plain, operation.outcome) {
        (true, _) => outcome,
        (false, Outcome::Succeeded) => format!("\x1b[32m{outcome}\x1b[0m"),
        (false, _) => format!("\x1b[31m{outcome}\x1b[0m"),
    };
    let microcents: u64 =
        operation.usage.iter().filter_map(|usage| usage.cost).map(|cost| cost.0).sum();
    let cents = match microcents {
        0 => "-".to_owned(),
        microcents => format!("{:.4} ¢", microcents as f64 / 1e6),
    };
    let or_dash = |found: Option<&str>| found.map_or("-".to_owned(), |found| clip(found, 16));
    let what = match &operation.error {
        Some(error) => clip(&error.message, 100),
        None => {
            let records = counted(operation.record_count, "record", "records");
            match provenance(operation.source.as_ref()) {
                from if from.is_empty() => records,
                from => format!("{records}, {from}"),
            }
        }
    };
    let line = format!(
        "{}  {outcome}  {:<14}  {:<16}  {:<16}  {:>9}  {cents:>10}  {what}",
        time(at),
        text(&operation.kind),
        or_dash(operation.binding_key.as_ref().map(BindingKey::as_str)),
        or_dash(operation.scope.agent_id.as_ref().map(AgentId::as_str)),
        micros(operation.latency_us),
    );
    line.trim_end().to_owned()
}

/// An event that is not an operation: its kind, id and state.
fn other(name: &str, happened: &Happened) -> String {
    let (binding, which, state, why) = match happened {
        Happened::Operation(operation) => {
            (operation.binding_key.as_ref(), text(&operation.id), text(&operation.outcome), None)
        }
        Happened::Job(job) => {
            (Some(&job.binding_key), text(&job.id), text(&job.status), job.error.clone())
        }
        Happened::Budget(view) => {
            let BudgetView { budget, spent, state, .. } = view.as_ref();
            (budget.binding_key.as_ref(), text(&budget.period), text(state), Some(text(spent)))
        }
        Happened::Plugin(PluginChange { path, outcome }) => {
            let (which, state, why) = match outcome {
                PluginOutcome::Admitted { provider_key, .. } => {
                    (text(provider_key), "admitted", None)
                }
                PluginOutcome::Refused { reason } => (text(path), "refused", Some(reason.clone())),
                PluginOutcome::Gone => (text(path), "gone", None),
            };
            (None, which, state.to_owned(), why)
        }
    };
    let line = format!(
        "{}  {state:<11}  {name:<14}  {:<16}  {which}  {}",
        time(Timestamp::now()),
        text(&binding),
        clip(&why.unwrap_or_default(), 100)
    );
    line.trim_end().to_owned()
}

/// The time of a day to the millisecond, in UTC.
fn time(at: Timestamp) -> String {
    at.strftime("%H:%M:%S%.3f").to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_operation_is_one_line() {
        let read = |json| serde_json::from_value::<Operation>(json).unwrap();
        let id = "0199f0a0-0000-7000-8000-000000000000";
        let good = read(json!({
            "id": id, "companyId": "acme", "principal": "operator",
            "scope": { "companyId": "acme", "agentId": "ada" },
            "kind": "query", "outcome": "succeeded", "bindingKey": "default", "latencyUs": 12_345,
            "startedAt": "2026-11-01T10:20:30.111Z", "finishedAt": "2026-11-01T10:20:30.123456Z",
            "recordCount": 1, "source": { "kind": "run", "companyId": "acme", "runId": "r1" },
            "usage": [{ "provider": "p", "costCents": 0.25 }],
        }));
        let bad = read(json!({
            "id": id, "companyId": "acme", "principal": "operator",
            "scope": { "companyId": "acme" },
            "kind": "capture", "outcome": "failed", "startedAt": "2026-11-01T10:20:30.111Z",
            "recordCount": 0,
            "error": { "code": "unavailable", "message": "the provider\nwas away" },
        }));
        // The columns of both lines, without the width that a terminal gives them.
        let columns = |operation_of: &Operation| {
            let line = operation(operation_of, true);
            line.split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .collect::<Vec<_>>()
                .join("|")
        };
        assert_eq!(
            columns(&good),
            "10:20:30.123|succeeded|query|default|ada|12.3 ms|0.2500 ¢|1 record, run r1"
        );
        assert_eq!(columns(&bad), "10:20:30.111|failed|capture|-|-|-|the provider was away");
        let starts = |line: String, what: &str| line.find(what).unwrap();
        assert_eq!(
            starts(operation(&good, true), "default"),
            starts(operation(&bad, true), "-  "),
            "the columns are below each other"
        );
        assert!(operation(&bad, false).contains("\x1b[31m"));
    }

    #[test]
    fn what_is_told_twice_is_shown_once() {
        let mut seen = Seen::default();
        assert!(seen.is_new("a") && !seen.is_new("a") && seen.is_new("b"));
        (0..Seen::MOST).for_each(|number| assert!(seen.is_new(&number.to_string())));
        assert!(seen.is_new("a"), "what is long ago is forgotten");
        assert_eq!(seen.known.len(), seen.order.len());
    }

    #[test]
    fn a_stream_that_breaks_is_read_to_where_it_broke() {
        let (sender, mut events) = mpsc::channel(8);
        let mut parser = Parser::default();
        let goes_on = std::thread::spawn(move || {
            let goes_on = read(
                "event: operation\nid: 1\ndata: {}\n\nid: 2\ndata: half".as_bytes(),
                &mut parser,
                &sender,
            );
            (goes_on, parser.last_id().map(str::to_owned), sender)
        });
        let (goes_on, _, sender) = goes_on.join().unwrap();
        assert!(goes_on);
        assert_eq!(events.try_recv().unwrap().unwrap().name, "operation");
        assert!(events.try_recv().is_err());
        drop(events);
        assert!(
            !read("data: {}\n\n".as_bytes(), &mut Parser::default(), &sender),
            "nobody listens"
        );
    }
}
