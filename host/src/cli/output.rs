//! Tables for people, JSON for programs.

use std::io::{IsTerminal, Write};

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell, ContentArrangement, Table};
use serde_json::Value;

use super::CliError;

/// Prints the host's JSON.
pub(super) fn json(value: &Value) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).map_err(CliError::host)?;
    line(&text)
}

/// Prints one line.
pub(super) fn line(text: &str) -> Result<(), CliError> {
    Ok(writeln!(std::io::stdout().lock(), "{text}")?)
}

/// Prints a table as wide as the terminal, or unbounded where there is none.
pub(super) fn table(head: &[&str], rows: Vec<Vec<String>>) -> Result<(), CliError> {
    if rows.is_empty() {
        return line("nothing");
    }
    line(&render(head, rows, is_plain()))
}

fn is_plain() -> bool {
    !std::io::stdout().is_terminal() || std::env::var_os("NO_COLOR").is_some()
}

fn render(head: &[&str], rows: Vec<Vec<String>>, is_plain: bool) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(head.iter().map(|title| {
        let cell = Cell::new(title.to_uppercase());
        if is_plain { cell } else { cell.add_attribute(Attribute::Dim) }
    }));
    if is_plain {
        table.force_no_tty();
    }
    for row in rows {
        table.add_row(row);
    }
    // Cells are padded on both sides; the line's own margins are not wanted.
    table
        .lines()
        .map(|line| line.trim_end().strip_prefix(' ').unwrap_or(&line).trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

/// A JSON field as text; empty where it is absent.
pub(super) fn text(value: &Value, pointer: &str) -> String {
    match value.pointer(pointer) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// The first line, cut to a width, at a character.
pub(super) fn clip(text: &str, width: usize) -> String {
    let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if flat.chars().count() <= width {
        return flat;
    }
    let mut cut: String = flat.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Where a memory came from, in one word.
pub(super) fn provenance(snippet: &Value) -> String {
    let kind = text(snippet, "/source/kind");
    let names = ["documentKey", "externalRef", "commentId", "runId", "activityId", "issueId"];
    let name = names.iter().map(|name| text(snippet, &format!("/source/{name}"))).find(|name| !name.is_empty());
    match name {
        Some(name) => format!("{kind} {name}"),
        None => kind,
    }
}

/// Microseconds as people read them.
pub(super) fn micros(value: Option<&Value>) -> String {
    match value.and_then(Value::as_u64) {
        None => String::new(),
        Some(us) if us < 1_000 => format!("{us} µs"),
        Some(us) if us < 1_000_000 => format!("{}.{} ms", us / 1_000, us % 1_000 / 100),
        Some(us) => format!("{}.{} s", us / 1_000_000, us % 1_000_000 / 100_000),
    }
}

/// A path's component or a query's value, escaped.
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
    use super::*;

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
    fn names_are_escaped_for_addresses() {
        assert_eq!(escape("a/b ü"), "a%2Fb%20%C3%BC");
        assert_eq!(clip("a  long\nline", 6), "a lon…");
        assert_eq!(micros(Some(&serde_json::json!(1_250))), "1.2 ms");
    }
}
