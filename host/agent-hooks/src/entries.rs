//! Our entries in the text of a tool's settings: how they look, how they are told from others', put in and taken out.

use serde_json::{Value, json};

use super::payload::Tool;
use super::splice::{self, Node};

/// How long a tool waits for a hook at most, in seconds. Ours is done long before; this is for the day that it is not.
const TIMEOUT: u64 = 5;

/// In which place of which file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edit {
    /// `hooks` of a JSON file, which both tools have in one form.
    Hooks(Tool),
    /// `notify` of Codex's `config.toml`.
    Notify,
}

/// The text with our entries as they should be. Where they are already, it is the same text.
pub(super) fn with(edit: Edit, text: &str, events: &[&str], command: &[String]) -> Result<String, String> {
    let Edit::Hooks(tool) = edit else { return with_notify(text, command) };
    let line = command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    let has_all = |text: &str| -> Result<bool, String> {
        let found = ours(&parse(text)?, tool);
        let same = found.iter().all(|found| found.command == line && events.contains(&found.event.as_str()));
        Ok(same && events.iter().all(|event| found.iter().filter(|found| found.event == *event).count() == 1))
    };
    if !text.trim().is_empty() && has_all(text)? {
        return Ok(text.to_owned());
    }
    let mut text = without(edit, text)?;
    if text.trim().is_empty() {
        "{}\n".clone_into(&mut text);
    }
    for event in events {
        // Without a matcher it is every tool, in both.
        let group = json!({"hooks": [{"type": "command", "command": line, "timeout": TIMEOUT}]});
        text = add(&text, event, &group)?;
    }
    Ok(text)
}

fn add(text: &str, event: &str, group: &Value) -> Result<String, String> {
    let root = parse(text)?;
    let is_object = |node: &Node| matches!(node.kind, splice::Kind::Object(_));
    if !is_object(&root) {
        return Err("it holds no JSON object".to_owned());
    }
    let Some(hooks) = root.member("hooks") else {
        return Ok(splice::add(text, &root, 0, Some("hooks"), &json!({event: [group]})));
    };
    if !is_object(hooks) {
        return Err("`hooks` is no object".to_owned());
    }
    match hooks.member(event) {
        Some(groups) if matches!(groups.kind, splice::Kind::Array(_)) => Ok(splice::add(text, groups, 2, None, group)),
        Some(_) => Err(format!("`hooks.{event}` is no list")),
        None => Ok(splice::add(text, hooks, 1, Some(event), &json!([group]))),
    }
}

/// The text without our entries, and without what is empty because of that.
pub(super) fn without(edit: Edit, text: &str) -> Result<String, String> {
    let Edit::Hooks(tool) = edit else { return without_notify(text) };
    let mut text = text.to_owned();
    if text.trim().is_empty() {
        return Ok(text);
    }
    loop {
        let root = parse(&text)?;
        let Some(found) = ours(&root, tool).into_iter().next() else { return Ok(text) };
        text = take_out(&text, &root, &found).ok_or("`hooks` cannot be read")?;
    }
}

/// One hook of ours: its event and where it is, by the group's and its own number.
struct Ours {
    event: String,
    group: usize,
    hook: usize,
    command: String,
}

fn ours(root: &Node, tool: Tool) -> Vec<Ours> {
    let mut found = Vec::new();
    for (event, _, groups) in root.member("hooks").map(Node::members).unwrap_or_default() {
        for (group, node) in groups.elements().iter().enumerate() {
            for (hook, node) in node.member("hooks").map(Node::elements).unwrap_or_default().iter().enumerate() {
                let command = node.member("command").and_then(Node::text).unwrap_or_default();
                if is_ours(command, tool) {
                    found.push(Ours { event: event.clone(), group, hook, command: command.to_owned() });
                }
            }
        }
    }
    found
}

/// Whether a command line is this adapter's, wherever the program is. One that somebody has put other words before is
/// theirs.
fn is_ours(command: &str, tool: Tool) -> bool {
    let rest = |marker: &str| command.split_once(marker).map(|(before, rest)| (before.to_owned(), rest.to_owned()));
    let marker = format!(" agent-hooks {}", tool.kind());
    let Some((program, rest)) = rest(&marker) else { return false };
    let program = program.trim_end_matches(['\'', '"']);
    let name = program.rsplit('/').next().unwrap_or_default().trim_start_matches(['\'', '"']);
    name.starts_with("memhost") && !name.contains(' ') && (rest.is_empty() || rest.starts_with(' '))
}

fn take_out(text: &str, root: &Node, found: &Ours) -> Option<String> {
    let hooks = root.member("hooks")?;
    let groups = hooks.member(&found.event)?;
    let list = groups.elements().get(found.group)?.member("hooks")?;
    let spans = |nodes: &[Node]| nodes.iter().map(|node| node.span.clone()).collect::<Vec<_>>();
    let named =
        |node: &Node| node.members().iter().map(|(_, key, value)| key.start..value.span.end).collect::<Vec<_>>();
    // The outermost thing that holds nothing but this.
    if list.elements().len() > 1 {
        return Some(splice::remove(text, list, &spans(list.elements()), found.hook));
    }
    if groups.elements().len() > 1 {
        return Some(splice::remove(text, groups, &spans(groups.elements()), found.group));
    }
    let place = |node: &Node, name: &str| node.members().iter().position(|(key, ..)| key == name);
    if hooks.members().len() > 1 {
        return Some(splice::remove(text, hooks, &named(hooks), place(hooks, &found.event)?));
    }
    Some(splice::remove(text, root, &named(root), place(root, "hooks")?))
}

fn parse(text: &str) -> Result<Node, String> {
    splice::parse(text).map_err(|error| {
        let line = text[..error.0.min(text.len())].lines().count().max(1);
        format!("{error}, in line {line}; put it right first")
    })
}

/// A word as a shell takes it for one.
fn quoted(word: &str) -> String {
    let is_plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-:@%+=,".contains(c));
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

fn toml(text: &str) -> Result<toml_edit::DocumentMut, String> {
    text.parse().map_err(|error: toml_edit::TomlError| error.to_string())
}

fn notify_is_ours(document: &toml_edit::DocumentMut) -> Option<bool> {
    let words = document.get("notify")?.as_array();
    let words: Vec<&str> = words.into_iter().flatten().filter_map(toml_edit::Value::as_str).collect();
    let line = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    Some(is_ours(&line, Tool::Codex))
}

fn with_notify(text: &str, command: &[String]) -> Result<String, String> {
    let mut document = toml(text)?;
    if notify_is_ours(&document) == Some(false) {
        return Err("`notify` is another program's, and Codex runs one only; use hooks, without --notify".to_owned());
    }
    let words: toml_edit::Array = command.iter().map(String::as_str).collect();
    let is_same = document.get("notify").is_some_and(|found| found.to_string().trim() == words.to_string().trim());
    if is_same {
        return Ok(text.to_owned());
    }
    document["notify"] = toml_edit::value(words);
    Ok(document.to_string())
}

fn without_notify(text: &str) -> Result<String, String> {
    let mut document = toml(text)?;
    if notify_is_ours(&document) != Some(true) {
        return Ok(text.to_owned());
    }
    document.remove("notify");
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: [&str; 3] = ["/usr/local/bin/memhost", "agent-hooks", "claude"];

    fn command() -> Vec<String> {
        OURS.iter().map(|word| (*word).to_owned()).chain(["--company".to_owned(), "a b".to_owned()]).collect()
    }

    #[test]
    fn only_our_own_commands_are_ours() {
        for (line, is) in [
            ("memhost agent-hooks claude", true),
            ("'/opt/my tools/memhost' agent-hooks claude --company x", true),
            ("/x/memhost-0.2 agent-hooks claude", true),
            ("memhost agent-hooks codex", false),
            ("memhost agent-hooks claudette", false),
            ("my-memhost-wrapper x agent-hooks claude", false),
            ("echo memhost agent-hooks claude", false),
            ("prettier --write", false),
        ] {
            assert_eq!(is_ours(line, Tool::Claude), is, "{line}");
        }
    }

    #[test]
    fn what_others_wrote_stays_byte_for_byte() {
        let edit = Edit::Hooks(Tool::Claude);
        for before in [
            "{\n    \"model\": \"opus\",\n    \"hooks\": {\n        \"Stop\": [\n            {\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}\n        ]\n    },\n    \"permissions\": {\"allow\": []}\n}\n",
            "{\"z\":1,\"a\":2}",
            "{\n\t\"b\": 1\r\n}\r\n",
        ] {
            let after = with(edit, before, &["SessionStart", "Stop"], &command()).unwrap();
            assert_ne!(after, before);
            let value: Value = serde_json::from_str(&after).unwrap();
            let stop = value["hooks"]["Stop"].as_array().unwrap().last().unwrap()["hooks"][0].clone();
            assert_eq!(stop["command"], "/usr/local/bin/memhost agent-hooks claude --company 'a b'");
            assert_eq!(with(edit, &after, &["SessionStart", "Stop"], &command()).unwrap(), after, "twice is once");
            assert_eq!(without(edit, &after).unwrap(), before);
        }
        assert!(with(edit, "{\"hooks\": []}", &["Stop"], &command()).unwrap_err().contains("hooks"));
        assert!(with(edit, "{oops", &["Stop"], &command()).unwrap_err().contains("line 1"));
    }

    #[test]
    fn a_program_that_is_told_of_turns_is_put_in_beside_comments() {
        let before = "# mine\nmodel = \"o3\" # fast\n\n[tools]\nweb = true\n";
        let ours = ["/bin/memhost", "agent-hooks", "codex", "notify"].map(str::to_owned);
        let after = with(Edit::Notify, before, &[], &ours).unwrap();
        assert!(after.contains("# fast") && after.contains("notify = [\"/bin/memhost\""), "{after}");
        assert!(toml(&after).unwrap()["notify"].is_array());
        assert_eq!(with(Edit::Notify, &after, &[], &ours).unwrap(), after);
        assert_eq!(without(Edit::Notify, &after).unwrap(), before);
        assert!(with(Edit::Notify, "notify = [\"terminal-notifier\"]", &[], &ours).is_err());
        assert_eq!(without(Edit::Notify, "notify = [\"x\"]").unwrap(), "notify = [\"x\"]");
    }
}
