//! One call of a hook: from the tool's JSON to what the tool adds to the session.
//!
//! It ends soon and with success whatever happens. A session must never wait for memory, and never
//! fail because of it.

use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::http::{self, RequestError};
use super::json;
use super::private_project;
use super::project::Project;
use super::recall;
use super::settings::{HookArgs, Settings};
use super::signal::Signals;
use super::spool::Spool;
use super::state::State;
use super::tools::Tool;

/// The name of the command below `memhost`.
pub(super) const NAME: &str = "agent-hooks";
/// How long the tool may take to write its JSON.
const READING: Duration = Duration::from_secs(2);
/// The longest JSON, in bytes. The response of a tool call is in it.
const MAX_INPUT: u64 = 32 << 20;
/// How long sending an event may take when it cannot be written to the spool.
const DIRECT: Duration = Duration::from_millis(50);

/// Runs a hook. `argument` is the JSON, where the tool gives it as an argument instead of on
/// standard input.
pub(super) fn run(tool: Tool, args: &HookArgs, argument: Option<String>) {
    let state = State::open();
    std::panic::set_hook(Box::new(|_| {}));
    let result = catch_unwind(AssertUnwindSafe(|| handle(tool, args, argument, &state)));
    match result {
        Ok(Ok(())) => {}
        Ok(Err(problem)) => state.log(&format!("{}: {problem}", tool.name())),
        Err(_) => state.log(&format!(
            "{}: the hook panicked; this is a bug in memhost, please report it",
            tool.name()
        )),
    }
}

fn handle(
    tool: Tool,
    args: &HookArgs,
    argument: Option<String>,
    state: &State,
) -> Result<(), String> {
    let text = match argument {
        Some(text) => text.into_bytes(),
        None => read_input()?,
    };
    let value: Value =
        json::parse(&text).map_err(|error| format!("the hook's input is not JSON: {error}"))?;
    let event = tool.parse(&value).ok_or("the hook's input is not an event of a session")?;
    drop(value);
    let (mut settings, warnings) = Settings::resolve(args, tool.name());
    for warning in warnings {
        state.log(&warning);
    }
    let company = settings.company.as_deref().ok_or(
        "no company is set; install the hook with --company ID, or set MEMHOST_COMPANY \
                where the tool runs",
    )?;
    if company.is_empty()
        || company.contains(|c: char| c.is_control() || c.is_whitespace() || "/\\?#%".contains(c))
    {
        return Err(
            "the company's id has characters that an id cannot have; set another with --company"
                .to_owned(),
        );
    }
    let directory =
        event.directory.clone().or_else(|| std::env::current_dir().ok()).unwrap_or_default();
    settings.capture = settings.capture && !private_project::is_private(tool, &directory);
    let project = match &settings.project {
        Some(id) => Project::named(id, &directory),
        None => Project::of(&directory),
    };
    let now = jiff::Timestamp::now();
    let signals =
        Signals { tool, settings: &settings, company, project: &project, event: &event, now };
    let is_waiting = enqueue(&signals, &settings, state);
    if let Some(hydrate) = signals.hydrate() {
        print_recall(&signals, &hydrate, &settings, state);
    }
    if is_waiting && !state.is_circuit_open(&settings.url) {
        start_delivery(args, tool)
            .map_err(|error| format!("the process that delivers cannot be started: {error}"))?;
    }
    Ok(())
}

/// Reads standard input to its end. A thread does it, so that a tool that never closes it does not
/// stop the hook.
fn read_input() -> Result<Vec<u8>, String> {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = std::io::stdin().lock().take(MAX_INPUT + 1).read_to_end(&mut text);
        let _ = done.send(read.map(|_| text));
    });
    match is_done.recv_timeout(READING) {
        Ok(Ok(text)) if text.len() as u64 > MAX_INPUT => {
            Err(format!("the hook's input has more than {MAX_INPUT} bytes"))
        }
        Ok(Ok(text)) => Ok(text),
        Ok(Err(error)) => Err(format!("the hook's input cannot be read: {error}")),
        Err(_) => {
            Err(format!("the tool did not close the hook's input within {} s", READING.as_secs()))
        }
    }
}

/// Writes the events to the spool, and answers whether something waits there. When the spool cannot
/// be written, as on a full disk, they are sent at once, and lost if that fails.
fn enqueue(signals: &Signals<'_>, settings: &Settings, state: &State) -> bool {
    let entries = signals.entries(state);
    let spool = Spool::open(state, settings);
    // Events that wait since an earlier hook are delivered by the next one, also when it has no
    // event itself.
    let mut is_waiting =
        entries.is_empty() && spool.as_ref().is_ok_and(|spool| spool.waiting().0 > 0);
    for entry in entries {
        let kept = spool.as_ref().map_err(ToString::to_string);
        match kept.and_then(|spool| spool.add(&entry).map_err(|error| error.to_string())) {
            Ok(()) => is_waiting = true,
            Err(error) => {
                state.log(&format!("an event cannot be written to the spool: {error}"));
                let until = Instant::now() + DIRECT;
                let body = entry.body.to_string();
                let _ = http::post(
                    settings.host(),
                    settings.token.as_deref(),
                    &entry.path,
                    body.as_bytes(),
                    until,
                );
            }
        }
    }
    is_waiting
}

/// Asks memory, and prints what the tool adds to the session.
fn print_recall(signals: &Signals<'_>, hydrate: &Value, settings: &Settings, state: &State) {
    if state.is_circuit_open(&settings.url) {
        return;
    }
    let until = Instant::now() + settings.deadline;
    let answer = http::post(
        settings.host(),
        settings.token.as_deref(),
        &signals.hooks_path(),
        hydrate.to_string().as_bytes(),
        until,
    );
    let body = match answer {
        Ok((200..300, body)) => body,
        Ok((status, _)) => {
            return state.log(&format!("nothing is recalled: the host answers {status}"));
        }
        Err(RequestError::Unreachable(why)) => {
            return state.log(&format!("nothing is recalled: {why}"));
        }
        Err(RequestError::TimedOut) => {
            state.open_circuit(&settings.url);
            return state.log("nothing is recalled: the host does not answer in time");
        }
    };
    let answer: Option<Value> = json::parse(&body).ok();
    let text = answer
        .as_ref()
        .and_then(|answer| answer.pointer("/context/text")?.as_str())
        .unwrap_or_default();
    if let Some(line) = recall::output(signals.tool, &signals.event.hook, text) {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}

/// Starts a process that delivers, and does not wait for it. It has a process group of its own, so
/// that a tool that ends its group does not end it, and it keeps none of the tool's pipes open.
fn start_delivery(args: &HookArgs, tool: Tool) -> std::io::Result<()> {
    use std::os::unix::process::CommandExt;
    let program = program()?;
    let mut command = Command::new(program);
    command.args([NAME, "spool", "--flush", "--quiet", "--tool", tool.name()]);
    for word in args.words() {
        command.arg(word);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .process_group(0);
    command.spawn().map(drop)
}

/// The path of this program. Linux marks a program that was replaced while it ran; the new one is
/// meant then.
pub(super) fn program() -> std::io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let text = path.to_string_lossy();
    Ok(text
        .strip_suffix(" (deleted)")
        .map_or_else(|| path.clone(), |path| Path::new(path).to_owned()))
}
