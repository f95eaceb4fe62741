//! The end of a session's transcript: what a person asked last, and what the agent answered last.
//! Only the file that the tool names is read, no link is followed, and only its last part is read.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use serde_json::Value;

use super::agent_tool::AgentTool;
use super::payload::{EventKind, SessionEvent};
use super::recall;

/// How much of the end of a transcript is read, in bytes.
const MAX_READ: u64 = 512 << 10;

/// The last prompt and its answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Exchange {
    pub(super) prompt: Option<String>,
    pub(super) answer: Option<String>,
}

/// The exchange that an event is about: from the event itself and, for what it does not say, from
/// the transcript.
pub(super) fn exchange_of(tool: &dyn AgentTool, event: &SessionEvent) -> Exchange {
    let read =
        || event.transcript.as_deref().map(|path| last_exchange(tool, path)).unwrap_or_default();
    match &event.kind {
        EventKind::TurnEnded { prompt: Some(prompt), answer, .. } => {
            Exchange { prompt: Some(prompt.clone()), answer: answer.clone() }
        }
        EventKind::TurnEnded { prompt: None, answer: Some(answer), .. } => {
            Exchange { answer: Some(answer.clone()), ..read() }
        }
        _ => read(),
    }
}

/// The length of the transcript, in bytes, as a text. It tells one moment of a session from
/// another, so that two equal prompts are two events.
pub(super) fn moment_of(event: &SessionEvent) -> String {
    event.transcript.as_deref().map_or(0, length).to_string()
}

fn last_exchange(tool: &dyn AgentTool, path: &Path) -> Exchange {
    tail(path).map(|text| exchange(tool, &text)).unwrap_or_default()
}

fn length(path: &Path) -> u64 {
    open(path).and_then(|file| file.metadata().ok()).map_or(0, |found| found.len())
}

/// Opens a regular file. No link is followed, and no pipe or device is waited for.
fn open(path: &Path) -> Option<File> {
    if !path.is_absolute() {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    file.metadata().ok()?.is_file().then_some(file)
}

fn tail(path: &Path) -> Option<String> {
    let mut file = open(path)?;
    let length = file.metadata().ok()?.len();
    let start = length.saturating_sub(MAX_READ);
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_READ).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    // A part begins in the middle of a line.
    Some(if start == 0 {
        text
    } else {
        text.split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap_or_default()
    })
}

/// The last exchange in these lines.
pub(super) fn exchange(tool: &dyn AgentTool, text: &str) -> Exchange {
    let mut found = Exchange::default();
    for line in text.lines().rev() {
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
        match message(tool, &line) {
            // What the agent said before the last prompt belongs to an earlier exchange.
            Some((Role::User, text)) => {
                found.prompt = Some(text);
                break;
            }
            Some((Role::Assistant, text)) if found.answer.is_none() => found.answer = Some(text),
            _ => {}
        }
    }
    found
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
}

/// Who said what in a line; nothing for tool calls, thoughts and what the tool itself put in.
fn message(tool: &dyn AgentTool, line: &Value) -> Option<(Role, String)> {
    let (role, content) = tool.message(line)?;
    let role = match role {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => return None,
    };
    let text = match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let is_text = |part: &&Value| {
                let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
                matches!(kind, "text" | "input_text" | "output_text")
            };
            let texts = parts.iter().filter(is_text).filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => return None,
    };
    let text = recall::without(&text);
    let text = text.trim();
    let is_injected = role == Role::User
        && tool.injected_prefixes().iter().any(|prefix| text.starts_with(prefix));
    if text.is_empty() || is_injected { None } else { Some((role, text.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::find;

    #[test]
    fn the_last_exchange_is_found_between_tool_calls_and_injected_text() {
        let claude = r#"
            {"type":"user","message":{"role":"user","content":"an older question"}}
            {"type":"assistant","message":{"content":[{"type":"text","text":"an older answer"}]}}
            {"type":"user","message":{"role":"user","content":"why is it slow?"}}
            {"type":"user","isMeta":true,"message":{"role":"user","content":"Caveat"}}
            {"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"}]}}
            {"type":"assistant","message":{"content":[{"type":"text","text":"I look."},{"type":"tool_use","name":"Bash"}]}}
            {"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"12 s"}]}}
            {"type":"assistant","isSidechain":true,"message":{"content":[{"type":"text","text":"of a subagent"}]}}
            {"type":"assistant","message":{"content":[{"type":"text","text":"The index was missing."}]}}
            not JSON at all"#;
        let found = exchange(find("claude").unwrap(), claude);
        assert_eq!(found.prompt.as_deref(), Some("why is it slow?"));
        assert_eq!(found.answer.as_deref(), Some("The index was missing."));
        let codex = r#"
            {"type":"session_meta","payload":{"id":"s"}}
            {"type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"rules"}]}}
            {"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x</environment_context>"}]}}
            {"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"rename foo"}]}}
            {"type":"response_item","payload":{"type":"function_call","name":"shell"}}
            {"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Renamed."}]}}"#;
        let found = exchange(find("codex").unwrap(), codex);
        assert_eq!(
            (found.prompt.as_deref(), found.answer.as_deref()),
            (Some("rename foo"), Some("Renamed."))
        );
    }

    #[test]
    fn only_the_file_that_was_named_is_read() {
        let tool = find("claude").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("t.jsonl");
        let line = r#"{"type":"user","message":{"role":"user","content":"here"}}"#;
        std::fs::write(&file, line).unwrap();
        assert_eq!(last_exchange(tool, &file).prompt.as_deref(), Some("here"));
        assert_eq!(length(&file), line.len() as u64);
        let link = directory.path().join("link.jsonl");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(last_exchange(tool, &link), Exchange::default());
        assert_eq!(last_exchange(tool, directory.path()), Exchange::default());
        assert_eq!(last_exchange(tool, Path::new("t.jsonl")), Exchange::default());
        // Only the end of a long file is read.
        let long = format!("{}\n{line}\n", "x".repeat(3 << 20));
        std::fs::write(&file, long).unwrap();
        assert_eq!(last_exchange(tool, &file).prompt.as_deref(), Some("here"));
        assert!(tail(&file).unwrap().len() < 1 << 20);
    }
}
