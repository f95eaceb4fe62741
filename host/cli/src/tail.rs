//! `memhost tail`: shows operations as they happen.

mod sse;

use std::collections::{HashSet, VecDeque};
use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::Value;
use tokio::sync::mpsc;

pub(super) use self::sse::Event;
use self::sse::Parser;
use super::args::CompanyArgs;
use super::argument::one_of;
use super::output::{Format, clip, is_plain, line, micros, provenance, text};
use super::session::Session;
use super::{Backend, CliError, argument, serve};
use memhost_types::{OperationKind, Outcome, counted};

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
    #[arg(long, value_name = "KIND", value_parser = one_of(OperationKind::ALL, OperationKind::as_str))]
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

pub(super) async fn run(args: TailArgs) -> Result<(), CliError> {
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
    let stopped = serve::stop();
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
        let Ok(value) = serde_json::from_str::<Value>(&event.data) else { continue };
        let is_new = event.name != "operation" || seen.is_new(&text(&value, "/id"));
        if is_new && args.lets_through(&event.name, &value) {
            line(&shown(format, &event.name, &value)?)?;
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
    fn lets_through(&self, name: &str, value: &Value) -> bool {
        let is = |wanted: &Option<String>, pointers: &[&str]| {
            wanted
                .as_ref()
                .is_none_or(|wanted| pointers.iter().any(|pointer| text(value, pointer) == *wanted))
        };
        self.event.iter().any(|what| argument::name(what) == name)
            && is(&self.kind, &["/kind"])
            && is(&self.outcome, &["/outcome"])
            && is(&self.binding, &["/bindingKey"])
            && is(&self.agent, &["/scope/agentId", "/agentId"])
    }
}

/// Reads the stream and reconnects after a break. Ends where the receiver is gone or the host
/// refuses.
pub(super) fn follow(host: &Backend, path: &str, sender: &mpsc::Sender<Result<Event, CliError>>) {
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
fn read(
    stream: impl Read,
    parser: &mut Parser,
    sender: &mpsc::Sender<Result<Event, CliError>>,
) -> bool {
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

fn shown(format: Format, name: &str, value: &Value) -> Result<String, CliError> {
    match format {
        Format::Table if name == "operation" => Ok(operation(value, is_plain())),
        Format::Table => Ok(other(name, value)),
        Format::Json | Format::Jsonl => Ok(value.to_string()),
        // Each document of a stream begins with `---`.
        Format::Yaml => Ok(format!("---\n{}", format.render(value, "", |_| String::new())?)),
    }
}

/// One line: time, outcome, kind, binding, agent, duration, cost and records.
pub(super) fn operation(value: &Value, is_plain: bool) -> String {
    let at = text(value, "/finishedAt");
    let at = if at.is_empty() { text(value, "/startedAt") } else { at };
    let outcome = text(value, "/outcome");
    let outcome = match (is_plain, outcome.as_str()) {
        (true, _) => format!("{outcome:<11}"),
        (false, "succeeded") => format!("\x1b[32m{outcome:<11}\x1b[0m"),
        (false, _) => format!("\x1b[31m{outcome:<11}\x1b[0m"),
    };
    let cents: f64 = value["usage"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|usage| usage["costCents"].as_f64())
        .sum();
    let cents = if cents > 0.0 { format!("{cents:.4} ¢") } else { "-".to_owned() };
    let or_dash = |pointer: &str| match text(value, pointer) {
        found if found.is_empty() => "-".to_owned(),
        found => clip(&found, 16),
    };
    let message = text(value, "/error/message");
    let what = match message.is_empty() {
        true => {
            let count = value["recordCount"].as_u64().unwrap_or_default();
            let from = provenance(value);
            let records = counted(count, "record", "records");
            if from.is_empty() { records } else { format!("{records}, {from}") }
        }
        false => clip(&message, 100),
    };
    let line = format!(
        "{}  {outcome}  {:<14}  {:<16}  {:<16}  {:>9}  {cents:>10}  {what}",
        at.get(11..23).unwrap_or(&at),
        text(value, "/kind"),
        or_dash("/bindingKey"),
        or_dash("/scope/agentId"),
        micros(value.get("latencyUs")),
    );
    line.trim_end().to_owned()
}

/// An event that is not an operation: its kind, id and state.
fn other(name: &str, value: &Value) -> String {
    let first = |pointers: &[&str]| {
        pointers
            .iter()
            .map(|pointer| text(value, pointer))
            .find(|found| !found.is_empty())
            .unwrap_or_default()
    };
    let now = jiff::Timestamp::now().to_string();
    let which = first(&["/id", "/description/providerKey", "/providerKey", "/path", "/period"]);
    let state = first(&["/status", "/state", "/event", "/change"]);
    let why = first(&["/error/message", "/error", "/reason", "/spentCents"]);
    let line = format!(
        "{}  {:<11}  {name:<14}  {:<16}  {which}  {}",
        now.get(11..23).unwrap_or(&now),
        state,
        first(&["/bindingKey"]),
        clip(&why, 100)
    );
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_operation_is_one_line() {
        let good = json!({
            "kind": "query", "outcome": "succeeded", "bindingKey": "default", "scope": { "agentId": "ada" },
            "startedAt": "2026-11-01T10:20:30.111Z", "finishedAt": "2026-11-01T10:20:30.123456Z", "latencyUs": 12_345,
            "recordCount": 1, "source": { "kind": "run", "runId": "r1" }, "usage": [{ "costCents": 0.25 }],
        });
        let bad = json!({
            "kind": "capture", "outcome": "failed", "scope": {}, "startedAt": "2026-11-01T10:20:30.111Z",
            "recordCount": 0, "error": { "message": "the provider\nwas away" },
        });
        insta::assert_snapshot!(format!("{}\n{}", operation(&good, true), operation(&bad, true)), @r"
        10:20:30.123  succeeded    query           default           ada                 12.3 ms    0.2500 ¢  1 record, run r1
        10:20:30.111  failed       capture         -                 -                                     -  the provider was away
        ");
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
