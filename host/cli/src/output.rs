//! Tables for people; JSON, lines of JSON and YAML for programs.

use std::io::{IsTerminal, Write};

use clap::ValueEnum;
use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell, ColumnConstraint, ContentArrangement, Table};
use serde::Serialize;
use serde_json::Value;

use super::texts::{escaped, is_deceptive, printable, text};
use super::{CliError, Result};

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
    /// JSON in this format; `items` names the member with the items of a list.
    pub(super) fn render(
        self,
        json: &Value,
        items: &str,
        human: impl FnOnce() -> Result<String>,
    ) -> Result<String> {
        match self {
            Self::Table => human(),
            Self::Json => serde_json::to_string_pretty(json)
                .map(|text| escaped(&text))
                .map_err(CliError::host),
            Self::Jsonl => Ok(lines(json, items)),
            Self::Yaml => {
                let text = serde_saphyr::to_string(json).map_err(CliError::host)?;
                match is_deceptive(&text) {
                    // JSON is YAML, too, and has an escape for every character.
                    true => Self::Json.render(json, items, human),
                    false => Ok(text.trim_end().to_owned()),
                }
            }
        }
    }

    /// What a command made itself, in this format.
    pub(super) fn tell(
        self,
        report: &impl Serialize,
        items: &str,
        human: impl FnOnce() -> String,
    ) -> Result<String> {
        let json = serde_json::to_value(report).map_err(CliError::host)?;
        self.render(&json, items, || Ok(human()))
    }

    /// All fields of what a command made itself, in this format.
    pub(super) fn tell_all(self, report: &impl Serialize) -> Result<String> {
        let json = serde_json::to_value(report).map_err(CliError::host)?;
        self.render(&json, "", || Ok(details(&json)))
    }
}

/// One line for each item; one line for an answer without items.
pub(super) fn lines(answer: &Value, items: &str) -> String {
    match answer.get(items).and_then(Value::as_array) {
        Some(items) => {
            items.iter().map(|item| escaped(&item.to_string())).collect::<Vec<_>>().join("\n")
        }
        None => escaped(&answer.to_string()),
    }
}

/// Styles that a line may have on a terminal: dim, red, green, none.
const STYLES: [&str; 4] = ["\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[0m"];

/// Says something to the person, also where the answer is for a program.
pub(super) fn say(text: &str) -> Result<()> {
    Ok(writeln!(std::io::stderr(), "{}", printable(text))?)
}

/// Prints one line; an empty text prints nothing. Nothing but text and our own styles reaches the
/// terminal.
pub(super) fn line(text: &str) -> Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let shown = if is_plain() { printable(text) } else { styled(text) };
    Ok(writeln!(std::io::stdout().lock(), "{shown}")?)
}

fn styled(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        shown.push_str(&printable(&rest[..at]));
        let style = STYLES.into_iter().find(|style| rest[at..].starts_with(style));
        shown.push_str(style.unwrap_or("\\u{1b}"));
        rest = &rest[at + style.map_or(1, str::len)..];
    }
    shown.push_str(&printable(rest));
    shown
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
    !std::io::stdout().is_terminal()
        || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
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
        table.add_row(row.iter().map(|cell| printable(cell).replace('\t', "\\t")));
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

/// All fields of one item: a line for each value, with its path.
pub(super) fn details(json: &Value) -> String {
    let mut rows = Vec::new();
    flatten("", json, &mut rows);
    table(&[], rows)
}

fn flatten(path: &str, value: &Value, rows: &mut Vec<Vec<String>>) {
    let below =
        |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
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
            let all: Vec<String> = items.iter().map(text).collect();
            rows.push(vec![path.to_owned(), all.join(", ")]);
        }
        scalar => rows.push(vec![path.to_owned(), text(scalar)]),
    }
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
        assert_eq!(
            styled("\x1b[31mfailed\x1b[0m \x1b[2J\x1b"),
            "\x1b[31mfailed\x1b[0m \\u{1b}[2J\\u{1b}"
        );
    }

    #[test]
    fn no_format_prints_what_deceives() {
        let answer = json!({ "items": [{ "text": "\u{9b}2J \u{202e}\u{e0062}" }] });
        for format in [Format::Json, Format::Jsonl, Format::Yaml] {
            let shown = format.render(&answer, "items", || Ok(String::new())).unwrap();
            assert!(!is_deceptive(&shown), "{shown:?}");
            // JSON is YAML, too.
            let read: Value = serde_saphyr::from_str(&shown).unwrap();
            assert_eq!(if format == Format::Jsonl { &answer["items"][0] } else { &answer }, &read);
        }
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
        let shown =
            |format: Format| format.render(&answer, "items", || Ok("a table".to_owned())).unwrap();
        assert_eq!(shown(Format::Table), "a table");
        assert_eq!(serde_json::from_str::<Value>(&shown(Format::Json)).unwrap(), answer);
        assert_eq!(shown(Format::Jsonl), "{\"a\":1}\n{\"a\":\"no\"}");
        // `no` is a word here and not a truth value, so YAML has to quote it or read it back as a
        // word.
        assert_eq!(serde_saphyr::from_str::<Value>(&shown(Format::Yaml)).unwrap(), answer);
        assert_eq!(lines(&json!({ "key": 1 }), "items"), "{\"key\":1}");
    }
}
