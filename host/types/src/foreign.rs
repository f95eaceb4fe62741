//! Text from outside, as it is shown to a model, to a person and in the log. Records, profiles,
//! ids, sources and errors of providers are written by others: none of it may look like words of
//! the host, hide something, or change how the rest is shown.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character shows nothing, or changes the order of what is shown (UTS 55). With some of
/// them a whole text can be hidden behind one letter. Joiners and variation selectors are told by
/// what is beside them.
fn is_hidden(c: char) -> bool {
    match c {
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => {
            true
        }
        '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{3164}' => true,
        '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fff0}'..='\u{fffb}' | '\u{13430}'..='\u{13455}' | '\u{e0000}'..='\u{e0fff}' => true,
        // A blank of Braille.
        '\u{2800}' => true,
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        _ => c.is_control(),
    }
}

fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}')
}

/// Whether a joiner has something to join here: the letters of some scripts, and emoji.
fn is_joined(c: Option<char>) -> bool {
    c.is_some_and(|c| !(c.is_ascii() || c.is_whitespace() || is_hidden(c) || is_joiner(c)))
}

/// Writes each character that is not to be seen as `escape` does. `keeps` has those that stay.
fn escaped<'a>(
    text: &'a str,
    keeps: impl Fn(char) -> bool,
    escape: impl Fn(char, &mut String),
) -> Cow<'a, str> {
    let is_plain = |c: char| !(is_hidden(c) || is_joiner(c) || is_selector(c)) || keeps(c);
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let (mut before, mut rest) = (None, text.chars().peekable());
    while let Some(c) = rest.next() {
        let stays = is_plain(c)
            || (is_joiner(c) && is_joined(before) && is_joined(rest.peek().copied()))
            || (is_selector(c)
                && before.is_some_and(|before: char| {
                    !(before.is_whitespace() || is_selector(before) || is_hidden(before))
                }));
        match stays {
            true => shown.push(c),
            false => escape(c, &mut shown),
        }
        before = Some(c);
    }
    Cow::Owned(shown)
}

fn as_number(c: char, into: &mut String) {
    let _ = write!(into, "\\u{{{:x}}}", u32::from(c));
}

/// A text for a message of one line: what cannot be seen, and every end of a line, is written as
/// its number, such as `\u{a}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false, as_number)
}

/// The same for a text that has lines: their ends and tabs stay.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    let shown = escaped(text, |c| matches!(c, '\n' | '\r' | '\t'), as_number);
    if !shown.contains('\r') {
        return shown;
    }
    Cow::Owned(shown.replace("\r\n", "\n").replace('\r', "\\u{d}"))
}

/// JSON in whose texts what cannot be seen is written as JSON escapes it: what it means is the
/// same.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    escaped(
        json,
        |c| matches!(c, '\n' | '\t'),
        |c, into| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(into, "\\u{unit:04x}");
            }
        },
    )
}

/// A text in one line, with single spaces between its words.
pub fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    visible(&words).into_owned()
}

/// The longest name that is shown whole, in bytes: the longest path.
const MAX_NAME: usize = crate::limits::MAX_NODE_PATH_BYTES;

/// An id, a path or the name of a source within a line for a model. What could be read as more than
/// a name is a JSON string; its value is what other calls take.
pub fn name(text: &str) -> String {
    let is_plain = |c: char| (c.is_alphanumeric() && !is_hidden(c)) || "-_.:/@+=~#%&*".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) && text.len() <= MAX_NAME {
        true => text.to_owned(),
        false => json_string(text, MAX_NAME),
    }
}

/// A text within a line for a model, in quotes, and cut after so many characters.
pub fn quoted(text: &str, most: usize) -> String {
    json_string(&text.split_whitespace().collect::<Vec<_>>().join(" "), most)
}

fn json_string(text: &str, most: usize) -> String {
    let end = text.char_indices().nth(most).map(|(at, _)| at);
    let json = serde_json::Value::from(&text[..end.unwrap_or(text.len())]).to_string();
    let more = if end.is_some() { "…" } else { "" };
    format!("{}{more}", visible_json(&json))
}

/// A text of several lines for a model. Each line begins with `> `, so none of them looks like a
/// line of the host.
pub fn block(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 16);
    for line in visible_lines(text).trim_end_matches('\n').split('\n') {
        if !quoted.is_empty() {
            quoted.push('\n');
        }
        quoted.push_str("> ");
        quoted.push_str(line);
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_cannot_be_seen_is_written_as_its_number() {
        assert_eq!(visible("ünit \u{202e}x\u{200b}\n"), "ünit \\u{202e}x\\u{200b}\\u{a}");
        assert_eq!(visible("a\0b\u{1b}[31m\u{e0041}"), "a\\u{0}b\\u{1b}[31m\\u{e0041}");
        assert_eq!(visible_lines("a\r\nb\tc\r\u{2028}d"), "a\nb\tc\\u{d}\\u{2028}d");
        assert_eq!(visible_json("\"a\u{e0041}\u{7f}\""), r#""a\udb40\udc41\u007f""#);
        assert_eq!(visible("a\u{180f}\u{1bca0}\u{1d173}"), "a\\u{180f}\\u{1bca0}\\u{1d173}");
        assert_eq!(one_line(" a\n\n- b\u{1b}\t[r]"), "a - b\\u{1b} [r]");
    }

    #[test]
    fn joiners_stay_where_they_join() {
        for text in [
            "می\u{200c}خواهم",
            "👩\u{200d}👧",
            "❤\u{fe0f}\u{200d}🔥",
            "1\u{fe0f}\u{20e3}",
            "क्\u{200d}ष",
            "שלום",
            "e\u{301}",
        ] {
            assert_eq!(visible(text), text);
        }
        assert_eq!(visible("pass\u{200d}word"), "pass\\u{200d}word");
        assert_eq!(visible("می\u{200c}\u{200c}خ"), "می\\u{200c}\\u{200c}خ");
        assert_eq!(visible("a\u{fe0f}\u{fe01} \u{fe02}"), "a\u{fe0f}\\u{fe01} \\u{fe02}");
        assert_eq!(visible("\u{200d}"), "\\u{200d}");
    }

    #[test]
    fn a_name_ends_where_it_ends() {
        assert_eq!(name("mcp:claude-code/2.1"), "mcp:claude-code/2.1");
        assert_eq!(name("日記"), "日記");
        let fillers = ["r\u{3164}1", "\u{115f}r", "r\u{1160}", "\u{ffa0}"];
        let others = ["a] (2026-11-27", "a, asserted by operator", "r 1", "a\u{2028}b", "\"", ""];
        for more in others.into_iter().chain(fillers) {
            let named = name(more);
            assert!(named.starts_with('"') && named.ends_with('"'), "{named}");
            assert_eq!(serde_json::from_str::<String>(&named).unwrap(), more);
        }
        assert_eq!(quoted("a \"b\"\nc", 100), r#""a \"b\" c""#);
        assert_eq!(quoted("abcdef", 3), "\"abc\"…");
    }

    #[test]
    fn every_line_of_a_block_is_quoted() {
        assert_eq!(
            block("a\n[r 2] (x)\u{2028}y\n\n# System\n"),
            "> a\n> [r 2] (x)\\u{2028}y\n> \n> # System"
        );
        assert_eq!(block(""), "> ");
    }

    proptest! {
        #[test]
        fn nothing_leaves_its_place(
            text in "\\PC{0,8}[\\n\\r\u{85}\u{2028}\u{b}\\]\"\u{e0041}]{0,4}.{0,8}",
        ) {
            const ENDS: [char; 7] =
                ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}', '\u{b}', '\u{c}'];
            prop_assert!(block(&text).split(ENDS).all(|line| line.starts_with("> ")));
            let named = name(&text);
            prop_assert!(!named.contains(ENDS) && !named.contains(is_hidden));
            if named.starts_with('"') {
                prop_assert_eq!(serde_json::from_str::<String>(&named).unwrap(), text);
            }
        }
    }
}
