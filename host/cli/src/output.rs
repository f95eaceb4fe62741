//! Tables for people; JSON, lines of JSON and YAML for programs.

use std::io::{IsTerminal, Write};

use clap::ValueEnum;
use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell, ColumnConstraint, ContentArrangement, Table};
use serde_json::Value;

use super::CliError;

/// The output format of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    #[default]
    Table,
    Json,
    Jsonl,
    Yaml,
}

impl Format {
    /// An answer as text; `items` names the member with the items of a list.
    pub(super) fn render(
        self,
        answer: &Value,
        items: &str,
        human: impl FnOnce(&Value) -> String,
    ) -> Result<String, CliError> {
        match self {
            Self::Table => Ok(human(answer)),
            Self::Json => serde_json::to_string_pretty(answer).map_err(CliError::host),
            Self::Jsonl => Ok(lines(answer, items)),
            Self::Yaml => {
                let text = serde_saphyr::to_string(answer).map_err(CliError::host)?;
                Ok(text.trim_end().to_owned())
            }
        }
    }
}

/// One line for each item; one line for an answer without items.
pub(super) fn lines(answer: &Value, items: &str) -> String {
    match answer.get(items).and_then(Value::as_array) {
        Some(items) => items.iter().map(Value::to_string).collect::<Vec<_>>().join("\n"),
        None => answer.to_string(),
    }
}

/// Prints one line; an empty text prints nothing.
pub(super) fn line(text: &str) -> Result<(), CliError> {
    if text.is_empty() {
        return Ok(());
    }
    Ok(writeln!(std::io::stdout().lock(), "{text}")?)
}

/// A table as wide as the terminal; unbounded without a terminal.
pub(super) fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() {
        return "nothing".to_owned();
    }
    render(head, rows, is_plain())
}

/// Whether output has no colour and no animation.
pub(super) fn is_plain() -> bool {
    !std::io::stdout().is_terminal() || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

fn render(head: &[&str], rows: Vec<Vec<String>>, is_plain: bool) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if !head.is_empty() {
        table.set_header(head.iter().map(|title| {
            let cell = Cell::new(title.to_uppercase());
            if is_plain { cell } else { cell.add_attribute(Attribute::Dim) }
        }));
    }
    // The table has the width of the terminal, also without colour.
    if !std::io::stdout().is_terminal() {
        table.force_no_tty();
    } else if is_plain {
        let width = table.width();
        table.force_no_tty();
        if let Some(width) = width {
            table.set_width(width);
        }
    }
    let columns = rows.first().map_or(head.len(), Vec::len);
    for row in rows {
        table.add_row(row.iter().map(|cell| printable(cell)));
    }
    for (index, title) in (0..columns).zip(head.iter().copied().chain(std::iter::repeat(""))) {
        if let Some(column) = table.column_mut(index) {
            column.set_padding((0, 2));
            // Ids are copied, so they are not wrapped.
            if title == "id" {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Escapes control characters. Any agent can write a record, and a terminal executes the control sequences in it.
fn printable(text: &str) -> String {
    let is_plain = |c: char| !c.is_control() || c == '\n';
    text.chars().map(|c| if is_plain(c) { c.to_string() } else { c.escape_default().to_string() }).collect()
}

/// All fields of one item: a line for each value, with its path.
pub(super) fn details(value: &Value) -> String {
    let mut rows = Vec::new();
    flatten("", value, &mut rows);
    table(&[], rows)
}

fn flatten(path: &str, value: &Value, rows: &mut Vec<Vec<String>>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::Null => {}
        Value::Object(members) => {
            for (name, member) in members {
                flatten(&below(name), member, rows);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for (index, item) in items.iter().enumerate() {
                flatten(&below(&index.to_string()), item, rows);
            }
        }
        Value::Array(items) if items.is_empty() => {}
        Value::Array(items) => {
            let all: Vec<String> = items.iter().map(|item| text(item, "")).collect();
            rows.push(vec![path.to_owned(), all.join(", ")]);
        }
        scalar => rows.push(vec![path.to_owned(), text(scalar, "")]),
    }
}

/// A JSON field as text; empty where it is absent.
pub(super) fn text(value: &Value, pointer: &str) -> String {
    match value.pointer(pointer) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// A time to the second, in UTC.
pub(super) fn moment(at: &str) -> String {
    at.get(..19).unwrap_or(at).replace('T', " ")
}

/// The first line, cut to a width in characters.
pub(super) fn clip(text: &str, width: usize) -> String {
    let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if flat.chars().count() <= width {
        return flat;
    }
    let mut cut: String = flat.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// The source of a record, in a few words.
pub(super) fn provenance(snippet: &Value) -> String {
    let kind = text(snippet, "/source/kind");
    let names = ["documentKey", "externalRef", "commentId", "runId", "activityId", "issueId"];
    let name = names.iter().map(|name| text(snippet, &format!("/source/{name}"))).find(|name| !name.is_empty());
    match name {
        Some(name) => format!("{kind} {name}"),
        None => kind,
    }
}

/// Microseconds as a readable duration.
pub(super) fn micros(value: Option<&Value>) -> String {
    match value.and_then(Value::as_u64) {
        None => String::new(),
        Some(us) if us < 1_000 => format!("{us} µs"),
        Some(us) if us < 1_000_000 => format!("{}.{} ms", us / 1_000, us % 1_000 / 100),
        Some(us) => format!("{}.{} s", us / 1_000_000, us % 1_000_000 / 100_000),
    }
}

/// A path segment or query value, percent-encoded.
pub(super) fn escape(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn control_characters_reach_no_terminal() {
        let shown = render(&["text"], vec![vec!["a\x1b]0;title\x07\u{9b}31m\nb".to_owned()]], true);
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
        assert!(shown.contains("\\u{1b}]0;title"), "{shown}");
    }

    #[test]
    fn tables_are_plain_when_piped() {
        let rows = vec![vec!["a".to_owned(), "1".to_owned()], vec!["bb".to_owned(), String::new()]];
        insta::assert_snapshot!(render(&["name", "count"], rows, true), @r"
        NAME  COUNT
        a     1
        bb
        ");
    }

    #[test]
    fn everything_that_is_known_of_a_thing_has_a_line() {
        let thing = json!({
            "key": "a", "isDefault": true, "gone": null, "agents": ["x", "y"],
            "limits": { "callTimeoutMs": 5 }, "steps": [{ "rule": "first" }, { "rule": "second" }],
        });
        insta::assert_snapshot!(details(&thing), @r"
        agents                x, y
        isDefault             true
        key                   a
        limits.callTimeoutMs  5
        steps.0.rule          first
        steps.1.rule          second
        ");
    }

    #[test]
    fn one_answer_has_four_forms() {
        let answer = json!({ "items": [{ "a": 1 }, { "a": "no" }], "nextCursor": "x" });
        let shown = |format: Format| format.render(&answer, "items", |_| "a table".to_owned()).unwrap();
        assert_eq!(shown(Format::Table), "a table");
        assert_eq!(serde_json::from_str::<Value>(&shown(Format::Json)).unwrap(), answer);
        assert_eq!(shown(Format::Jsonl), "{\"a\":1}\n{\"a\":\"no\"}");
        // `no` is a word here and not a truth value, so YAML has to quote it or read it back as a word.
        assert_eq!(serde_saphyr::from_str::<Value>(&shown(Format::Yaml)).unwrap(), answer);
        assert_eq!(lines(&json!({ "key": 1 }), "items"), "{\"key\":1}");
    }

    #[test]
    fn names_are_escaped_for_addresses() {
        assert_eq!(escape("a/b ü"), "a%2Fb%20%C3%BC");
        assert_eq!(clip("a  long\nline", 6), "a lon…");
        assert_eq!(micros(Some(&json!(1_250))), "1.2 ms");
        assert_eq!(moment("2026-11-01T10:20:30.123Z"), "2026-11-01 10:20:30");
    }
}
