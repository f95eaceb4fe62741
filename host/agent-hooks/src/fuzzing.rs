//! What `tests/fuzz` gives its bytes to.

use serde_json::Value;

use super::payload::EventKind;
use super::settings_entries::{Entries, SettingsFormat};
use super::tools::TOOLS;
use super::transcript::{Question, Step};
use super::{json, recall, transcript};

/// A hook's payload and a session's transcript, read as each tool would: events, or nothing.
///
/// # Panics
/// If what was read breaks a rule of this crate.
pub fn payload(payload: &[u8], transcript: &str) {
    for tool in TOOLS {
        for step in transcript::steps(*tool, transcript) {
            let text = match step {
                Step::Asked(Question { words, .. }) => words.unwrap_or_else(|| "-".to_owned()),
                Step::Answered { text, .. } => text,
                Step::Interrupted => continue,
            };
            assert!(!text.trim().is_empty() && !text.contains(recall::OPEN), "{text}");
        }
        let Ok(value) = json::parse::<Value>(payload) else { return };
        let Some(event) = tool.parse(&value) else { continue };
        assert!(!event.session.is_empty() && !event.hook.is_empty());
        if let EventKind::ToolStarted { tool, id } | EventKind::ToolEnded { tool, id, .. } =
            &event.kind
        {
            assert!(!tool.is_empty() && !id.is_empty());
        }
    }
}

/// A context that the host answered: what the tool adds to the session has one block, and all of it
/// is removed again.
///
/// # Panics
/// If it has more, or something of it is left.
pub fn context(text: &str) {
    for tool in TOOLS {
        let Some(printed) = recall::output(*tool, "SessionStart", text) else { continue };
        let printed: Value = serde_json::from_str(&printed).unwrap_or_default();
        let context =
            printed.pointer("/hookSpecificOutput/additionalContext").and_then(Value::as_str);
        let context = context.unwrap_or_default();
        assert!(
            context.starts_with(recall::OPEN) && recall::without(context).is_empty(),
            "{context}"
        );
    }
}

/// Settings of a tool with our entries added and removed: nothing of ours is left, or an error says
/// why.
///
/// # Panics
/// If something is left.
pub fn settings(text: &str) {
    let command = ["memhost", "agent-hooks", "codex"].map(str::to_owned);
    for format in [SettingsFormat::HooksJson, SettingsFormat::NotifyToml] {
        let entries = Entries { format, tool: "codex" };
        let Ok(added) = entries.add(text, &["SessionStart", "Stop"], &command) else { continue };
        assert_eq!(entries.add(&added, &["SessionStart", "Stop"], &command).as_ref(), Ok(&added));
        match entries.remove(&added) {
            Ok(removed) => {
                assert!(text.contains("memhost") || !removed.contains("memhost"), "{removed}")
            }
            Err(error) => panic!("{added}: {error}"),
        }
    }
}
