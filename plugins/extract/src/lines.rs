//! Splits a captured text into sentences: code, logs and quotations are skipped, wrapped lines
//! joined, speakers noted.

use std::sync::LazyLock;

use regex_lite::Regex;
use unicode_segmentation::UnicodeSegmentation;

use super::clause::is_han;
use super::speakers::{Speaker, named, role};

/// Longer sentences, in bytes, are skipped.
const LONGEST: usize = 600;

const CODE: &[&str] = &[
    // Statements, declarations, shell prompts, markup, paths with line numbers.
    r"^\s*(?:import|from \S+ import|def \w+\(|fn \w+|class \w+[:({]|#include|using \w+;|package \w+;|const \w+ ?=|let \w+ ?=|var \w+ ?=|return\b.*[;)]$|if ?\(|for ?\(|while ?\(|else ?\{|pub (?:fn|struct|enum|mod)|async (?:fn|def)|function \w*\(|elif .*:$|try:|except|@\w+\(?)",
    r"^\s*(?:\$|>>>|#!|%|\.\./|\./)\s?\S",
    r"(?i)^\s*(?:select .+ from|insert into|create table|alter table|update \w+ set|delete from)\b",
    r"[;{}]\s*$",
    r"^\s*[\]})]+[;,]?\s*$",
    r"^\s*</?[a-zA-Z][^>]*>",
    r#"^\s*["{\[].*[\]}],?\s*$"#,
    r"^\s*at [\w$.<>]+\(.*\)$",
    r#"^\s*File ".*", line \d+"#,
    r"^(?:diff --git|@@ |[+-]{3} |index [0-9a-f]{7})",
    r"=>|->\s*\w+\s*\{|:=|==|!=|&&|\|\||\w\(\)|\w+\[\w*\]|::\w",
    // Logs.
    r"^\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d",
    r"^\s*\[?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b[\]:]",
    r"^\s*(?:Traceback|panicked at|thread '.*' panicked)",
    // Mail headers and quotations of somebody else.
    r"^\s*(?:From|To|Cc|Subject|Date|Sent):\s",
    r"^\s*>",
    // Tables and rules.
    r"^\s*\|.*\|\s*$",
    r"^\s*[-=*_#~]{3,}\s*$",
];

/// A command at a shell. Without a prompt it can also be a sentence about the program: `make sure
/// it works`.
const COMMAND: &str = r"^\s*(?:git|cargo|npm|pip|docker|kubectl|sudo|apt|apt-get|brew|curl|cd|ls|mkdir|make|python3?|node|psql|ssh)(?: -{1,2}\w| [a-z0-9_./:@=-]+(?: \S+)*$).*";
const PROSE: [&str; 20] = [
    "is",
    "was",
    "are",
    "has",
    "a",
    "an",
    "the",
    "it",
    "me",
    "sure",
    "my",
    "our",
    "for",
    "and",
    "over",
    "us",
    "them",
    "everything",
    "all",
    "was",
];
const BULLET: &str = r"^\s*(?:[-*+\u{2022}]|\d{1,3}[.)])\s+";
const CHECKED: &str = r"^\s*(?:[-*+]\s+)?\[[xX]\]\s";
const HEADING: &str = r"^\s*#{1,6}\s";

static PATTERNS: LazyLock<Vec<Regex>> =
    LazyLock::new(|| CODE.iter().filter_map(|text| Regex::new(text).ok()).collect());
static COMMANDS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(COMMAND).ok());
static BULLETS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(BULLET).ok());
static DONE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(CHECKED).ok());
static HEADINGS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(HEADING).ok());

fn found<'a>(regex: &LazyLock<Option<Regex>>, line: &'a str) -> Option<regex_lite::Match<'a>> {
    regex.as_ref().and_then(|regex| regex.find(line))
}

/// Whether a line is code, a log, markup or a quotation.
pub(crate) fn is_code(line: &str) -> bool {
    if line.starts_with("    ") && found(&BULLETS, line).is_none() || line.starts_with('\t') {
        return true;
    }
    if PATTERNS.iter().any(|pattern| pattern.is_match(line)) {
        return true;
    }
    let is_prose = line.split_whitespace().nth(1).is_some_and(|word| PROSE.contains(&word));
    if !is_prose && found(&COMMANDS, line).is_some() {
        return true;
    }
    // Sentences are letters and spaces; code and tables are not.
    let visible = line.chars().filter(|c| !c.is_whitespace()).count();
    let letters = line.chars().filter(|c| c.is_alphanumeric()).count();
    // Chinese has no spaces and more punctuation.
    let least = if line.chars().any(is_han) { 5 } else { 7 };
    visible > 12 && letters * 10 < visible * least
}

/// The sentences of a text with their speakers.
pub fn sentences(text: &str) -> Vec<(String, Speaker)> {
    let mut all = Vec::new();
    let (mut paragraph, mut who, mut fence) = (String::new(), Speaker::Unknown, false);
    // Where a person has a role, a name within the assistant's turn is a label of its text.
    let has_roles = text.lines().filter_map(role).any(|turn| turn.who == Speaker::Unknown);
    for line in text.lines() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            fence = !fence;
            end(&mut paragraph, who, &mut all);
            continue;
        }
        let turn = role(line).filter(|_| !fence);
        let mut rest = turn.as_ref().map_or(line, |turn| &line[turn.at..]);
        if let Some(turn) = turn {
            end(&mut paragraph, who, &mut all);
            who = turn.who;
        }
        if fence || rest.trim().is_empty() || is_code(rest) || found(&DONE, rest).is_some() {
            end(&mut paragraph, who, &mut all);
            continue;
        }
        if let Some(turn) = named(rest).filter(|_| rest.len() == line.len()) {
            end(&mut paragraph, who, &mut all);
            who = if who == Speaker::Machine && has_roles { who } else { turn.who };
            rest = &rest[turn.at..];
        }
        if found(&HEADINGS, rest).is_some() {
            end(&mut paragraph, who, &mut all);
            continue;
        }
        let bullet = found(&BULLETS, rest);
        if bullet.is_some() || !goes_on(&paragraph, rest) {
            end(&mut paragraph, who, &mut all);
        }
        let rest = rest[bullet.map_or(0, |bullet| bullet.end())..].trim();
        if !paragraph.is_empty() {
            paragraph.push(' ');
        }
        paragraph.push_str(rest);
    }
    end(&mut paragraph, who, &mut all);
    all
}

/// Whether a line is the rest of a sentence that was wrapped.
fn goes_on(before: &str, line: &str) -> bool {
    let open = !before.ends_with(['.', '!', '?', ':', ';']);
    open && before.len() > 40
        && line.trim_start().starts_with(|c: char| c.is_lowercase() || c.is_numeric())
        || before.ends_with(',')
}

fn end(paragraph: &mut String, who: Speaker, all: &mut Vec<(String, Speaker)>) {
    let mut sentence = String::new();
    for part in paragraph.split_sentence_bounds() {
        sentence.push_str(part);
        if !ends_in_abbreviation(&sentence) {
            keep(&mut sentence, who, all);
        }
    }
    keep(&mut sentence, who, all);
    paragraph.clear();
}

fn keep(sentence: &mut String, who: Speaker, all: &mut Vec<(String, Speaker)>) {
    let whole = sentence.trim();
    if !whole.is_empty() && whole.len() <= LONGEST {
        all.push((whole.to_owned(), who));
    }
    sentence.clear();
}

/// Abbreviations: a full stop after these does not end a sentence. The Unicode rules do not know
/// them.
fn ends_in_abbreviation(sentence: &str) -> bool {
    const SHORT: &[&str] = &[
        "dr.", "mr.", "mrs.", "ms.", "prof.", "st.", "e.g.", "i.e.", "vs.", "no.", "cf.",
        "approx.", "inc.", "ltd.", "jr.", "sr.", "fig.", "dept.", "est.", "p.s.", "ph.d.",
    ];
    let last = sentence.trim_end().rsplit(' ').next().unwrap_or_default().to_lowercase();
    SHORT.contains(&last.trim_start_matches(['(', '"']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        sentences(text).into_iter().map(|(text, _)| text).collect()
    }

    #[test]
    fn sentences_are_split_at_their_ends() {
        assert_eq!(
            texts("I like tea. Dr. Lee likes milk! Ok?"),
            ["I like tea.", "Dr. Lee likes milk!", "Ok?"]
        );
        let wrapped =
            "We decided to keep the old parser for now because\nthe new one is slower.\nNext line";
        assert_eq!(texts(wrapped).len(), 2);
        assert_eq!(
            texts("- one thing\n- [ ] open\n- [x] done\n2. two"),
            ["one thing", "[ ] open", "two"]
        );
    }

    #[test]
    fn code_logs_and_quotations_are_left_out() {
        let text = "Before.\n```python\nI prefer tea\n```\nlet x = 5;\n$ cargo test\n> I never eat meat\n2026-01-01T10:00:00 I prefer\n    indented()\ngit push origin main\n| a | b |\nAfter.";
        assert_eq!(texts(text), ["Before.", "After."]);
        for line in [
            "Make sure it works.",
            "We use C++ (and some C) here.",
            "Go home now, please!",
            "Node is slow.",
        ] {
            assert!(!is_code(line), "{line}");
        }
    }
}
