//! The Markdown journals of memsearch, as its plugins write them: a file for each day, with an
//! entry for each turn.
//!
//! ```text
//! # 2026-03-01
//!
//! ## Session 12:00
//!
//! ### 12:00
//! <!-- session:standup turn:0197f0c2 transcript:/home/ada/standup.jsonl -->
//! - The launch moved to Friday.
//! ```
//!
//! An entry that memhost writes has a second comment with the length of its text in bytes and what
//! else is known of it, as JSON: `<!-- memhost 27 {"id":"0197f0c2"} -->`. memsearch leaves comments
//! out of what it searches by meaning. So any text can be read back exactly, also one with
//! headings. If a person changed the text, the entry ends where the next one begins. So that a text
//! never holds what then looks like the next one, its lines that begin as an entry or a session get
//! a backslash in front, with which Markdown shows them as they are.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

/// One entry of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Where it is in the file, in bytes: from its heading up to the next entry.
    pub range: Range<usize>,
    /// The time in its heading, such as `12:00`. None of a file or section that is no journal.
    pub time: Option<&'a str>,
    /// The anchor: the words of its first comment, such as `session:standup turn:0197f0c2`.
    pub anchor: Option<&'a str>,
    /// The JSON that memhost wrote beside the text. Whoever edits the file can change it.
    pub note: Option<&'a str>,
    /// The text. A section that is no entry of a journal has its heading in it.
    pub text: Cow<'a, str>,
}

impl<'a> Entry<'a> {
    /// A word of the anchor, such as that of `session`.
    pub fn named(&self, name: &str) -> Option<&'a str> {
        let value = |word: &'a str| word.strip_prefix(name)?.strip_prefix(':');
        self.anchor?.split_whitespace().find_map(value).filter(|value| !value.is_empty())
    }
}

/// A new entry.
#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    /// The time of its heading, such as `12:00`.
    pub time: &'a str,
    /// Its anchor, see [`anchor`]; empty: none.
    pub anchor: &'a str,
    /// JSON without line feeds.
    pub note: &'a str,
    /// Any text.
    pub text: &'a str,
}

impl New<'_> {
    /// The entry as it is in the file.
    pub fn encode(&self) -> String {
        let anchor = if self.anchor.is_empty() {
            String::new()
        } else {
            format!("<!-- {} -->\n", self.anchor)
        };
        // In JSON the sign is in texts only, and `-->` would end the comment.
        let note = self.note.replace('>', "\\u003e");
        let (time, text) = (self.time, escaped(self.text));
        format!("### {time}\n{anchor}<!-- memhost {} {note} -->\n{text}\n\n", text.len())
    }

    /// The word of the anchor that names its session.
    fn session(&self) -> Option<&str> {
        self.anchor.split(' ').next().filter(|word| word.starts_with("session:"))
    }

    /// Adds it at the end of the journal of a day, such as `2026-03-01`. A new journal is an empty
    /// text.
    pub fn add_to(&self, journal: &mut String, day: &str) {
        if journal.is_empty() {
            journal.push_str(&format!("# {day}\n"));
        }
        while !journal.ends_with("\n\n") {
            journal.push('\n');
        }
        if !self.session().map_or_else(
            || journal.contains(SESSION),
            |session| journal.contains(&format!("{session} ")),
        ) {
            journal.push_str(&format!("{SESSION}{}\n\n", self.time));
        }
        journal.push_str(&self.encode());
    }
}

/// The journal of a day that is made from nothing. Adding an entry does not read those before: a
/// day may have many.
#[derive(Debug, Default)]
pub struct Journal {
    text: String,
    /// The sessions that have a heading.
    sessions: HashSet<String>,
}

impl Journal {
    /// Adds an entry, as [`New::add_to`] does. `day` is the journal's, such as `2026-03-01`.
    pub fn add(&mut self, entry: &New<'_>, day: &str) {
        if self.text.is_empty() {
            self.text.push_str(&format!("# {day}\n\n"));
        }
        let needs_heading = match entry.session() {
            Some(session) => self.sessions.insert(session.to_owned()),
            None => self.sessions.is_empty() && self.sessions.insert(String::new()),
        };
        if needs_heading {
            self.text.push_str(&format!("{SESSION}{}\n\n", entry.time));
        }
        self.text.push_str(&entry.encode());
    }

    /// The journal as it is in its file.
    pub fn into_text(self) -> String {
        self.text
    }
}

/// An anchor of these words, such as `session:standup turn:0197f0c2`. What memsearch could not read
/// is left out: nothing, and what has blanks, `>` or `--`.
pub fn anchor(words: &[(&str, Option<&str>)]) -> String {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'>';
    let fits = |word: &str| !word.is_empty() && word.bytes().all(is_plain) && !word.contains("--");
    let word = |(name, word): &(&str, Option<&str>)| {
        word.filter(|word| fits(word)).map(|word| format!("{name}:{word}"))
    };
    words.iter().filter_map(word).collect::<Vec<_>>().join(" ")
}

const SESSION: &str = "## Session ";

/// The entries of a file in their order. Sections of other Markdown are entries, too: each begins
/// with a heading of the first three levels. What has no text is left out.
pub fn entries(content: &str) -> Vec<Entry<'_>> {
    // Some editors write a byte-order mark, which is no part of the first line.
    let begin = content.len() - content.strip_prefix('\u{feff}').unwrap_or(content).len();
    let (mut found, mut at) = (Vec::new(), begin);
    while at < content.len() {
        let entry = entry_at(content, at);
        at = entry.range.end;
        // A heading alone says nothing.
        if !entry.text.lines().all(|line| line.trim().is_empty() || is_heading(line))
            || entry.note.is_some()
        {
            found.push(entry);
        }
    }
    found
}

fn entry_at(content: &str, start: usize) -> Entry<'_> {
    let mut at = start + line_at(content, start).len();
    let time = time_of(line_at(content, start));
    let (mut anchor, mut note) = (None, None);
    if time.is_some() {
        while let Some((said, behind)) = comment_at(content, at).filter(|_| note.is_none()) {
            at = behind;
            match said.strip_prefix("memhost ").and_then(|said| said.split_once(' ')) {
                Some((length, json)) => note = Some((length.parse::<usize>().ok(), json)),
                None => {
                    anchor.get_or_insert(said);
                }
            }
        }
    }
    let exact = note.and_then(|(length, _)| exact_end(content, at, length?));
    let end = exact.map_or_else(|| next(content, at, note.is_some()), |(_, end)| end);
    let text = match exact {
        Some((text_end, _)) => &content[at..text_end],
        None => content[if time.is_some() { at } else { start }..end].trim(),
    };
    let text = if note.is_some() { unescaped(text) } else { Cow::Borrowed(text) };
    Entry { range: start..end, time, anchor, note: note.map(|(_, json)| json), text }
}

/// Where a text of this length ends, and its entry. `None` if something else follows than the next
/// heading.
fn exact_end(content: &str, at: usize, length: usize) -> Option<(usize, usize)> {
    let text_end = at.checked_add(length)?;
    let rest = content.get(text_end..)?;
    let behind = rest.trim_start_matches('\n');
    let is_end = rest.starts_with('\n') && (behind.is_empty() || is_heading(behind));
    is_end.then(|| (text_end, content.len() - behind.len()))
}

/// Where the next entry begins: of a text that memhost wrote, and that may have headings of its
/// own, the next of a journal.
fn next(content: &str, mut at: usize, is_ours: bool) -> usize {
    while at < content.len() {
        let line = line_at(content, at);
        let begins = if is_ours {
            time_of(line).is_some() || line.starts_with(SESSION)
        } else {
            is_heading(line)
        };
        if begins {
            return at;
        }
        at += line.len();
    }
    at
}

/// Whether a line, but for backslashes in front, begins an entry or a session.
fn is_mark(line: &str) -> bool {
    let line = line.trim_start_matches('\\');
    line.starts_with("### ") || line.starts_with(SESSION)
}

fn escaped(text: &str) -> Cow<'_, str> {
    match text.split('\n').any(is_mark) {
        false => Cow::Borrowed(text),
        true => {
            let line =
                |line: &str| if is_mark(line) { format!("\\{line}") } else { line.to_owned() };
            Cow::Owned(text.split('\n').map(line).collect::<Vec<_>>().join("\n"))
        }
    }
}

fn unescaped(text: &str) -> Cow<'_, str> {
    let plain =
        |line: &'_ str| line.strip_prefix('\\').filter(|_| is_mark(line)).map(str::to_owned);
    match text.split('\n').any(|line| plain(line).is_some()) {
        false => Cow::Borrowed(text),
        true => {
            let line = |line: &str| plain(line).unwrap_or_else(|| line.to_owned());
            Cow::Owned(text.split('\n').map(line).collect::<Vec<_>>().join("\n"))
        }
    }
}

fn line_at(content: &str, at: usize) -> &str {
    content.get(at..).and_then(|rest| rest.split_inclusive('\n').next()).unwrap_or_default()
}

fn is_heading(line: &str) -> bool {
    let title = line.trim_start_matches('#');
    (1..=3).contains(&(line.len() - title.len())) && title.starts_with([' ', '\t'])
}

/// The time of a heading such as `### 12:00`.
fn time_of(line: &str) -> Option<&str> {
    let time = line.strip_prefix("### ")?.trim_end();
    let is_time = time.len() == 5
        && time
            .bytes()
            .enumerate()
            .all(|(at, byte)| if at == 2 { byte == b':' } else { byte.is_ascii_digit() });
    is_time.then_some(time)
}

/// The text of the next comment line, and where the line behind it begins. Programs that format
/// Markdown put blank lines around a comment; behind those only ours and anchors count, because
/// other comments belong to the text.
fn comment_at(content: &str, at: usize) -> Option<(&str, usize)> {
    let mut from = at;
    while !line_at(content, from).is_empty() && line_at(content, from).trim().is_empty() {
        from += line_at(content, from).len();
    }
    let line = line_at(content, from);
    let is_known =
        |said: &str| from == at || said.starts_with("memhost ") || said.starts_with("session:");
    comment(line).filter(|said| is_known(said)).map(|said| (said, from + line.len()))
}

/// The text of a comment line.
fn comment(line: &str) -> Option<&str> {
    Some(line.trim_end().strip_prefix("<!-- ")?.strip_suffix("-->")?.trim())
}

#[cfg(test)]
mod tests;
