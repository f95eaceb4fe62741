//! The end of a session's transcript, as far as memory needs it: what a person asked last, and what the agent said last.
//! The file is the one that the tool names and nothing that it points to, and only its last part is read.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use serde_json::Value;

use super::recall;

/// How much of the end of a transcript is read, in bytes.
const MAX_READ: u64 = 512 << 10;

/// The last exchange.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Exchange {
    /// What a person asked.
    pub(super) prompt: Option<String>,
    /// What the agent answered.
    pub(super) message: Option<String>,
}

/// Reads it, where the file is one that can be read.
pub(super) fn last_exchange(path: &Path) -> Exchange {
    tail(path).map(|text| exchange(&text)).unwrap_or_default()
}

/// How long the file is, in bytes: it tells one moment of a session from another.
pub(super) fn length(path: &Path) -> u64 {
    open(path).and_then(|file| file.metadata().ok()).map_or(0, |found| found.len())
}

/// No link is followed, and no pipe or device is waited for.
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
    // The first line of a part is the end of one.
    Some(if start == 0 { text } else { text.split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap_or_default() })
}

fn exchange(text: &str) -> Exchange {
    let mut found = Exchange::default();
    for line in text.lines().rev() {
        let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
        match said(&entry) {
            // What the agent said before the last prompt belongs to another exchange.
            Some((true, text)) => {
                found.prompt = Some(text);
                break;
            }
            Some((false, text)) if found.message.is_none() => found.message = Some(text),
            _ => {}
        }
    }
    found
}

/// Whether a person said it, and what was said; nothing for tools, thoughts and what the tools themselves put in.
fn said(entry: &Value) -> Option<(bool, String)> {
    let kind = entry.get("type")?.as_str()?;
    let is_set = |name: &str| entry.get(name).and_then(Value::as_bool).unwrap_or(false);
    let (role, content) = match kind {
        // Claude Code: one message a line.
        "user" | "assistant" if !is_set("isMeta") && !is_set("isSidechain") && !is_set("isCompactSummary") => {
            (kind, entry.get("message")?.get("content")?)
        }
        // Codex: what the model saw.
        "response_item" => {
            let payload = entry.get("payload")?;
            if payload.get("type")?.as_str()? != "message" {
                return None;
            }
            (payload.get("role")?.as_str()?, payload.get("content")?)
        }
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
    // What the tools put into a person's mouth begins with a tag of theirs.
    let is_made = ["<environment_context>", "<user_instructions>", "<command-", "<local-command-", "<system-reminder>"]
        .iter()
        .any(|tag| text.starts_with(tag));
    let is_person = match role {
        "user" => true,
        "assistant" => false,
        _ => return None,
    };
    if text.is_empty() || is_person && is_made { None } else { Some((is_person, text.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_exchange_is_found_among_tools_and_what_the_tool_puts_in() {
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
        let found = exchange(claude);
        assert_eq!(found.prompt.as_deref(), Some("why is it slow?"));
        assert_eq!(found.message.as_deref(), Some("The index was missing."));
        let codex = r#"
            {"type":"session_meta","payload":{"id":"s"}}
            {"type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"rules"}]}}
            {"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x</environment_context>"}]}}
            {"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"rename foo"}]}}
            {"type":"response_item","payload":{"type":"function_call","name":"shell"}}
            {"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Renamed."}]}}"#;
        let found = exchange(codex);
        assert_eq!((found.prompt.as_deref(), found.message.as_deref()), (Some("rename foo"), Some("Renamed.")));
    }

    #[test]
    fn only_the_file_that_was_named_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("t.jsonl");
        let line = r#"{"type":"user","message":{"role":"user","content":"here"}}"#;
        std::fs::write(&file, line).unwrap();
        assert_eq!(last_exchange(&file).prompt.as_deref(), Some("here"));
        assert_eq!(length(&file), line.len() as u64);
        let link = directory.path().join("link.jsonl");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(last_exchange(&link), Exchange::default());
        assert_eq!(last_exchange(directory.path()), Exchange::default());
        assert_eq!(last_exchange(Path::new("t.jsonl")), Exchange::default());
        // However long it is, only its end is read.
        let long = format!("{}\n{line}\n", "x".repeat(3 << 20));
        std::fs::write(&file, long).unwrap();
        assert_eq!(last_exchange(&file).prompt.as_deref(), Some("here"));
        assert!(tail(&file).unwrap().len() < 1 << 20);
    }
}
