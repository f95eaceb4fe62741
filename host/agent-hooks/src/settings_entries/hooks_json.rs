//! Entries under `hooks` of a JSON file, in the form that Claude Code and Codex share:
//! `{"hooks": {EVENT: [{"hooks": [{"type": "command", "command": LINE, "timeout": SECONDS}]}]}}`.

use jsonc_parser::ast::{Array, Object, Value as Node};
use memhost_types::repair_surrogates;
use serde_json::{Value, json};

use super::command_line::is_ours;
use super::json_edit::{self, Container};

/// How long a tool waits for a hook, in seconds. A hook of ours ends well before; this is for the
/// case that it does not.
const TIMEOUT: u64 = 5;
/// Codex waits less for these at most, and complains about more.
const BRIEF: [(&str, u64); 2] = [("SessionEnd", 3), ("Interrupt", 3)];
/// Some editors write this before the text. It is not JSON; it is kept.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The settings with one entry of ours for each of these events.
pub(super) fn add(
    settings: &str,
    tool: &str,
    events: &[&str],
    line: &str,
) -> Result<String, String> {
    let (mark, text) = split_mark(settings);
    if !text.trim().is_empty() && is_up_to_date(text, tool, events, line)? {
        return Ok(settings.to_owned());
    }
    let mut text = remove(text, tool)?;
    if text.trim().is_empty() {
        "{}\n".clone_into(&mut text);
    }
    for event in events {
        // A group without a matcher is for every tool call.
        let brief = BRIEF.into_iter().find(|(name, _)| name == event);
        let timeout = brief.map_or(TIMEOUT, |(_, timeout)| timeout);
        let group = json!({"hooks": [{"type": "command", "command": line, "timeout": timeout}]});
        text = add_group(&text, event, &group)?;
    }
    Ok(format!("{mark}{text}"))
}

/// Whether one of our entries has a flag.
pub(super) fn have(settings: &str, tool: &str, flag: &str) -> bool {
    let readable = readable(split_mark(settings).1);
    let root = json_edit::parse(&readable);
    let has_it = |root: &Node<'_>| {
        find(root, tool).iter().any(|entry| entry.command.split(' ').any(|word| word == flag))
    };
    root.is_ok_and(|root| has_it(&root))
}

/// The settings without our entries.
pub(super) fn remove(settings: &str, tool: &str) -> Result<String, String> {
    let (mark, text) = split_mark(settings);
    let mut text = text.to_owned();
    while !text.trim().is_empty() {
        let readable = readable(&text);
        let root = json_edit::parse(&readable)?;
        let Some(found) = find(&root, tool).into_iter().next() else { break };
        text = remove_entry(&text, &root, &found)
            .ok_or("has `hooks` that cannot be changed; remove the entry by hand")?;
    }
    Ok(format!("{mark}{text}"))
}

/// The text without halves of characters, which tools read and a parser refuses. Everything stands
/// where it stood: the text itself is what is changed.
fn readable(text: &str) -> String {
    String::from_utf8_lossy(&repair_surrogates(text.as_bytes())).into_owned()
}

fn split_mark(settings: &str) -> (&str, &str) {
    let text = settings.strip_prefix(BYTE_ORDER_MARK).unwrap_or(settings);
    settings.split_at(settings.len() - text.len())
}

fn is_up_to_date(text: &str, tool: &str, events: &[&str], line: &str) -> Result<bool, String> {
    let readable = readable(text);
    let root = json_edit::parse(&readable)?;
    let found = find(&root, tool);
    let same = found.iter().all(|entry| entry.command == line && events.contains(&entry.event));
    Ok(same
        && events
            .iter()
            .all(|event| found.iter().filter(|entry| entry.event == *event).count() == 1))
}

fn add_group(text: &str, event: &str, group: &Value) -> Result<String, String> {
    let readable = readable(text);
    let root = json_edit::parse(&readable)?;
    let root = root.as_object().ok_or("holds no JSON object; the settings must be one")?;
    let Some(hooks) = root.get("hooks") else {
        return Ok(json_edit::append(
            text,
            Container::Object(root),
            0,
            Some("hooks"),
            &json!({event: [group]}),
        ));
    };
    let hooks =
        hooks.value.as_object().ok_or("has `hooks` that is not an object; correct it first")?;
    let Some(groups) = hooks.get(event) else {
        return Ok(json_edit::append(
            text,
            Container::Object(hooks),
            1,
            Some(event),
            &json!([group]),
        ));
    };
    let groups = groups
        .value
        .as_array()
        .ok_or_else(|| format!("has `hooks.{event}` that is not a list; correct it first"))?;
    Ok(json_edit::append(text, Container::Array(groups), 2, None, group))
}

/// An entry of ours: its event, and the positions of its group and of itself in the group.
struct Entry<'n> {
    event: &'n str,
    group: usize,
    hook: usize,
    command: &'n str,
}

fn hooks_of<'n, 't>(root: &'n Node<'t>) -> Option<&'n Object<'t>> {
    root.as_object()?.get_object("hooks")
}

fn list_of<'n, 't>(group: &'n Node<'t>) -> Option<&'n Array<'t>> {
    group.as_object()?.get_array("hooks")
}

fn find<'n>(root: &'n Node<'_>, tool: &str) -> Vec<Entry<'n>> {
    let mut found = Vec::new();
    for event in hooks_of(root).into_iter().flat_map(|hooks| &hooks.properties) {
        for (group, node) in
            event.value.as_array().into_iter().flat_map(|groups| &groups.elements).enumerate()
        {
            for (hook, node) in
                list_of(node).into_iter().flat_map(|list| &list.elements).enumerate()
            {
                let command = node.as_object().and_then(|hook| hook.get_string("command"));
                if let Some(command) = command.filter(|command| is_ours(&command.value, tool)) {
                    found.push(Entry {
                        event: event.name.as_str(),
                        group,
                        hook,
                        command: &command.value,
                    });
                }
            }
        }
    }
    found
}

/// Removes the outermost thing that holds nothing but this entry.
fn remove_entry(text: &str, root: &Node<'_>, entry: &Entry<'_>) -> Option<String> {
    let hooks = hooks_of(root)?;
    let groups = hooks.get_array(entry.event)?;
    let list = list_of(groups.elements.get(entry.group)?)?;
    if list.elements.len() > 1 {
        return Some(json_edit::remove(text, Container::Array(list), entry.hook));
    }
    if groups.elements.len() > 1 {
        return Some(json_edit::remove(text, Container::Array(groups), entry.group));
    }
    let index = |object: &Object<'_>, name: &str| {
        object.properties.iter().position(|p| p.name.as_str() == name)
    };
    if hooks.properties.len() > 1 {
        return Some(json_edit::remove(text, Container::Object(hooks), index(hooks, entry.event)?));
    }
    let root = root.as_object()?;
    Some(json_edit::remove(text, Container::Object(root), index(root, "hooks")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "/usr/local/bin/memhost agent-hooks claude --company 'a b'";
    const EVENTS: [&str; 2] = ["SessionStart", "Stop"];

    #[test]
    fn entries_of_others_stay_byte_for_byte() {
        for before in [
            "{\n    \"model\": \"opus\",\n    \"hooks\": {\n        \"Stop\": \
             [\n            {\"hooks\": [{\"type\": \"command\", \"command\": \"say \
             done\"}]}\n        ]\n    },\n    \"permissions\": {\"allow\": []}\n}\n",
            "{\"z\":1,\"a\":2}",
            "{\n\t\"b\": 1\r\n}\r\n",
            "{\"hooks\": {\"Stop\": [{\"hooks\": []}]}}",
            "\u{feff}{\n  \"a\": 1\n}\n",
        ] {
            let after = add(before, "claude", &EVENTS, LINE).unwrap();
            assert_ne!(after, before);
            let value: Value =
                serde_json::from_str(after.trim_start_matches(BYTE_ORDER_MARK)).unwrap();
            let stop =
                value["hooks"]["Stop"].as_array().unwrap().last().unwrap()["hooks"][0].clone();
            assert_eq!(stop["command"], LINE);
            assert_eq!(add(&after, "claude", &EVENTS, LINE).unwrap(), after, "twice is once");
            assert_eq!(remove(&after, "claude").unwrap(), before);
            assert_eq!(remove(&after, "codex").unwrap(), after, "another tool's entries stay");
        }
    }

    #[test]
    fn half_a_character_of_others_stays() {
        let settings = r#"{"note": "cut \ud83d", "hooks": {"Stop": [{"hooks": []}]}}"#;
        let added = add(settings, "codex", &["Stop"], "memhost agent-hooks codex").unwrap();
        assert!(added.contains("cut \\ud83d") && added.contains("memhost"), "{added}");
        assert_eq!(add(&added, "codex", &["Stop"], "memhost agent-hooks codex").unwrap(), added);
        assert_eq!(remove(&added, "codex").unwrap(), settings);
    }

    #[test]
    fn an_older_entry_is_replaced() {
        let older =
            add("{}", "claude", &["Stop", "PreCompact"], "memhost agent-hooks claude").unwrap();
        let newer = add(&older, "claude", &EVENTS, LINE).unwrap();
        assert!(!newer.contains("PreCompact"), "{newer}");
        assert_eq!(newer.matches("agent-hooks claude").count(), 2, "{newer}");
    }

    #[test]
    fn an_entry_between_others_goes_alone() {
        let before = "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"a\"}, \
                      {\"command\": \"memhost agent-hooks claude\"}, {\"command\": \"b\"}]}]}}";
        let after =
            "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"a\"}, {\"command\": \"b\"}]}]}}";
        assert_eq!(remove(before, "claude").unwrap(), after);
    }

    #[test]
    fn settings_of_another_shape_are_refused() {
        let refused = |text: &str| add(text, "claude", &["Stop"], LINE).unwrap_err();
        assert!(refused("{\"hooks\": []}").contains("`hooks`"));
        assert!(refused("{\"hooks\": {\"Stop\": {}}}").contains("`hooks.Stop`"));
        assert!(refused("[]").contains("no JSON object"));
        assert!(refused("{oops").contains("line 1"));
        assert!(refused("{ // mine\n}").contains("is not JSON"));
        assert!(remove("{oops", "claude").unwrap_err().contains("line 1"));
    }
}
