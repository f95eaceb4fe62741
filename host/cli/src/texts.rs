//! Values of answers as texts for a person, and texts that are safe on a terminal.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use memhost_types::SourceRef;
use memhost_types::foreign::{visible_json, visible_lines};

/// The longest text in a table, in characters.
const MAX_CELL: usize = 72;

/// Escapes what a terminal executes or hides. Any agent can write a record, and a person believes
/// what is shown of it.
pub(super) fn printable(text: &str) -> String {
    visible_lines(text).into_owned()
}

/// Whether something of a text would be executed or hidden.
pub(super) fn is_deceptive(text: &str) -> bool {
    visible_lines(text) != text
}

/// JSON with such characters as escapes; they are in nothing but its texts.
pub(super) fn escaped(json: &str) -> String {
    visible_json(json).into_owned()
}

/// A value as its JSON has it, a text without quotes; empty where there is none.
pub(super) fn text(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::Null) | Err(_) => String::new(),
        Ok(Value::String(text)) => text,
        Ok(other) => other.to_string(),
    }
}

/// The same in one line that fits into a table.
pub(super) fn cell(value: &impl Serialize) -> String {
    clip(&text(value), MAX_CELL)
}

/// A time to the second, in UTC; empty where there is none.
pub(super) fn moment(at: impl Into<Option<Timestamp>>) -> String {
    at.into().map(|at| at.strftime("%Y-%m-%d %H:%M:%S").to_string()).unwrap_or_default()
}

/// The hour of a time that is known to the hour, in UTC; empty where there is none.
pub(super) fn hour(at: Option<Timestamp>) -> String {
    let Some(at) = at else { return String::new() };
    let end = (at.strftime("%H").to_string().parse::<u8>().unwrap_or_default() + 1) % 24;
    format!("{}:00 to {end:02}:00", at.strftime("%Y-%m-%d %H"))
}

/// Microseconds as a readable duration; empty where there are none.
pub(super) fn micros(us: impl Into<Option<u64>>) -> String {
    match us.into() {
        None => String::new(),
        Some(us) if us < 1_000 => format!("{us} µs"),
        Some(us) if us < 1_000_000 => format!("{}.{} ms", us / 1_000, us % 1_000 / 100),
        Some(us) => format!("{}.{} s", us / 1_000_000, us % 1_000_000 / 100_000),
    }
}

/// The source of a record, in a few words; empty where it is not known.
pub(super) fn provenance(source: Option<&SourceRef>) -> String {
    let Some(source) = source else { return String::new() };
    let names = [
        &source.document_key,
        &source.external_ref,
        &source.comment_id,
        &source.run_id,
        &source.activity_id,
        &source.issue_id,
    ];
    match names.into_iter().flatten().next() {
        Some(name) => format!("{} {name}", source.kind),
        None => source.kind.to_string(),
    }
}

/// A source with all of its ids.
pub(super) fn source_in_full(source: Option<&SourceRef>) -> String {
    let Some(source) = source else { return String::new() };
    let named = source.ids().map(|(what, id)| format!("{what} {id}"));
    std::iter::once(source.kind.to_string()).chain(named).collect::<Vec<_>>().join(", ")
}

/// The text in one line, cut to a width in characters.
pub(super) fn clip(text: &str, width: usize) -> String {
    let flat: String = printable(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    if flat.chars().count() <= width {
        return flat;
    }
    let mut cut: String = flat.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
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
    use super::*;

    #[test]
    fn a_text_is_shown_in_the_order_that_it_has() {
        assert_eq!(printable("pay \u{202e}eve\u{200b}"), "pay \\u{202e}eve\\u{200b}");
        assert_eq!(printable("a\u{e0062}\u{e0101}\u{61c}"), "a\\u{e0062}\\u{e0101}\\u{61c}");
        assert_eq!(printable("a\r\nb\tc\r"), "a\nb\tc\\u{d}");
        for harmless in ["שלום, עולם", "مرحبا", "👩\u{200d}👧", "e\u{301}", "標識"]
        {
            assert_eq!(printable(harmless), harmless);
        }
    }

    #[test]
    fn names_are_escaped_for_addresses() {
        assert_eq!(escape("a/b ü"), "a%2Fb%20%C3%BC");
        assert_eq!(clip("a  long\nline", 6), "a lon…");
    }

    #[test]
    fn times_are_shown_as_far_as_they_are_known() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert_eq!(micros(1_250_u64), "1.2 ms");
        assert_eq!(moment(at("2026-11-01T10:20:30.123Z")), "2026-11-01 10:20:30");
        assert_eq!(hour(Some(at("2026-11-23T14:00:00Z"))), "2026-11-23 14:00 to 15:00");
        assert_eq!(hour(Some(at("2026-11-23T23:00:00Z"))), "2026-11-23 23:00 to 00:00");
        assert_eq!((hour(None), moment(None)), (String::new(), String::new()));
    }
}
