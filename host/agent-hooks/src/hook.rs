//! One call of a tool's hook, from its JSON to what the tool puts into the session. It ends soon and well whatever
//! happens: a session must never wait for memory, and never fail because of it.

use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::http::{self, RequestError};
use super::payload::{self, Tool};
use super::project::Project;
use super::recall;
use super::settings::{HookArgs, Settings};
use super::signal::Signals;
use super::spool::Spool;
use super::state::State;

/// How long a tool may take to hand its JSON over.
const READING: Duration = Duration::from_secs(2);
/// The longest JSON, in bytes: a tool's answer is in it.
const MAX_INPUT: u64 = 32 << 20;
/// How long an event may take to a host where there is no place to keep it.
const DIRECT: Duration = Duration::from_millis(50);

/// Does what a hook is to do. `argument` is the JSON where the tool gives it as an argument instead of on standard input.
pub(super) fn run(tool: Tool, args: &HookArgs, argument: Option<String>) {
    let state = State::open();
    std::panic::set_hook(Box::new(|_| {}));
    let done = catch_unwind(AssertUnwindSafe(|| {
        if let Err(complaint) = handle(tool, args, argument, &state) {
            state.log(&format!("{}: {complaint}", tool.kind()));
        }
    }));
    if done.is_err() {
        state.log("the adapter failed; this is a mistake in memhost");
    }
}

fn handle(tool: Tool, args: &HookArgs, argument: Option<String>, state: &State) -> Result<(), String> {
    let text = match argument {
        Some(text) => text.into_bytes(),
        None => read_input()?,
    };
    let value: Value =
        serde_json::from_slice(&text).map_err(|error| format!("the hook's input is no JSON: {error}"))?;
    let happened = payload::read(tool, &value).ok_or("the hook's input is no event of a session")?;
    drop(value);
    let (settings, complaints) = Settings::of(args);
    for complaint in complaints {
        state.log(&complaint);
    }
    let company = settings.company.as_deref().ok_or("no company is set: --company, MEMHOST_COMPANY or the file")?;
    if company.is_empty() || company.contains(|c: char| c.is_control() || c.is_whitespace() || "/\\?#%".contains(c)) {
        return Err("the company's id will not do".to_owned());
    }
    let directory = happened.directory.clone().or_else(|| std::env::current_dir().ok()).unwrap_or_default();
    let project = match &settings.project {
        Some(id) => Project { id: id.clone(), ..Project::of(&directory) },
        None => Project::of(&directory),
    };
    let now = jiff::Timestamp::now();
    let signals = Signals { tool, settings: &settings, company, project: &project, happened: &happened, now };
    let spooled = keep(&signals, &settings, state);
    if let Some(hydrate) = signals.hydrate() {
        ask(&signals.hooks_path(), &hydrate, &happened.event, &settings, state);
    }
    if spooled && !state.rests(&settings.url) {
        hand_on(args).map_err(|error| format!("no process can be started to deliver: {error}"))?;
    }
    Ok(())
}

/// Standard input to its end. A tool that never closes it is not waited for.
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
        Err(_) => Err("the hook's input did not come to its end".to_owned()),
    }
}

/// Keeps what is to be told, and answers whether something waits now. Where nothing can be kept, as on a full disk, it
/// goes to the host at once or nowhere.
fn keep(signals: &Signals<'_>, settings: &Settings, state: &State) -> bool {
    let entries = signals.entries(state);
    let spool = Spool::open(state, settings);
    // What a host missed before is delivered by whoever comes next, also where that one has nothing to tell.
    let mut any = entries.is_empty() && spool.as_ref().is_ok_and(|spool| spool.waiting().0 > 0);
    for entry in entries {
        let kept = spool.as_ref().map_err(ToString::to_string);
        match kept.and_then(|spool| spool.add(&entry).map_err(|error| error.to_string())) {
            Ok(()) => any = true,
            Err(error) => {
                state.log(&format!("an event cannot be kept: {error}"));
                let until = Instant::now() + DIRECT;
                let body = entry.body.to_string();
                let _ = http::post(&settings.url, settings.token.as_deref(), &entry.path, body.as_bytes(), until);
            }
        }
    }
    any
}

/// Asks memory and prints what the tool puts into the session.
fn ask(path: &str, hydrate: &Value, event: &str, settings: &Settings, state: &State) {
    if state.rests(&settings.url) {
        return;
    }
    let until = Instant::now() + settings.deadline;
    let answer = http::post(&settings.url, settings.token.as_deref(), path, hydrate.to_string().as_bytes(), until);
    let body = match answer {
        Ok((200..300, body)) => body,
        Ok((status, _)) => return state.log(&format!("memory is not recalled: the host answers {status}")),
        Err(RequestError::Unreachable(why)) => return state.log(&format!("memory is not recalled: {why}")),
        Err(RequestError::TimedOut) => {
            state.set_rest(&settings.url, true);
            return state.log("memory is not recalled: the host does not answer in time");
        }
    };
    let answer: Option<Value> = serde_json::from_slice(&body).ok();
    let text = answer.as_ref().and_then(|answer| answer.pointer("/context/text")?.as_str()).unwrap_or_default();
    if let Some(line) = recall::output(event, text) {
        let mut out = std::io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}

/// Starts a process that delivers, and does not wait for it. It is of a process group of its own, so that a tool that
/// ends its group does not end it, and it holds none of the tool's pipes open.
fn hand_on(args: &HookArgs) -> std::io::Result<()> {
    use std::os::unix::process::CommandExt;
    let program = program()?;
    let mut command = Command::new(program);
    command.args(["agent-hooks", "spool", "--flush", "--quiet"]);
    for word in args.words() {
        command.arg(word);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/").process_group(0);
    command.spawn().map(drop)
}

/// This program. On Linux a program that was replaced while it ran is still found under its name.
pub(super) fn program() -> std::io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let text = path.to_string_lossy();
    Ok(text.strip_suffix(" (deleted)").map_or_else(|| path.clone(), |path| Path::new(path).to_owned()))
}
