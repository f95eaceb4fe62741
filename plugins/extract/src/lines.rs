//! Splits a captured text into sentences: code, logs and quotations are skipped, wrapped lines joined, speakers noted.

use std::sync::LazyLock;

use regex_lite::Regex;
use unicode_segmentation::UnicodeSegmentation;

use super::clause::is_han;

/// The speaker of a sentence, as far as its line shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// No speaker is named, or one who may be the user.
    Unknown,
    /// The assistant, a tool or its output: nothing that it says is about the user, and nothing it proposes is decided.
    Machine,
}

/// Names of those who are no person, in lower case.
const MACHINES: [&str; 31] = [
    "assistant",
    "ai",
    "system",
    "bot",
    "chatgpt",
    "claude",
    "gpt",
    "copilot",
    "codex",
    "gemini",
    "agent",
    "model",
    "result",
    "results",
    "output",
    "tool",
    "stdout",
    "stderr",
    "response",
    "function",
    "terminal",
    "助手",
    "助理",
    "机器人",
    "系统",
    "结果",
    "输出",
    "工具",
    "模型",
    "智能体",
    "回答",
];

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

/// A command at a shell. Without a prompt it can also be a sentence about the program: `make sure it works`.
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
const SPEAKER: &str = r"^\s*(?:\[?\d{1,2}:\d\d(?::\d\d)?(?: ?[AP]M)?\]?\s*)?(?:\*\*)?(?:([A-Z][\w.-]{0,20}(?: [A-Z][\w.-]{0,20})?|(?i:user|human|assistant|ai|system|me|bot|agent|results?|output|tool|stdout|stderr|model|response))(?:\*\*)?(?: \(\d{1,2}:\d\d\))?[::](?:\*\*)?\s+|(用户|我|助手|助理|机器人|系统|结果|输出|工具|模型|智能体|回答)[::]\s*)\S";
const BULLET: &str = r"^\s*(?:[-*+\u{2022}]|\d{1,3}[.)])\s+";
const CHECKED: &str = r"^\s*(?:[-*+]\s+)?\[[xX]\]\s";
const HEADING: &str = r"^\s*#{1,6}\s";

/// Labels before a statement that are not names.
const NO_SPEAKERS: &str = "todo to-do task tasks note notes important warning caution caveat attention tip hint idea goal goals \
    decision decisions decided fact facts constraint constraints rule rules requirement requirements hypothesis assumption \
    theory guess keywords keyword topics topic tags tag interests focus areas domain domains themes preference preferences \
    profile project fyi nb reminder observation remark interesting update background action objective objectives summary \
    deadline remember next insight insights suggestion suggestions memo finding findings lesson lessons comment comments \
    detail details point annotation improvement thought thoughts trivia p.s ps imp kw field fields subject subjects skill \
    skills terms term words word concepts concept categories category disciplines discipline descriptors specialities \
    specialties label labels vocabulary glossary expertise technologies tech stack hashtags pillars scope venue budget date";

static PATTERNS: LazyLock<Vec<Regex>> =
    LazyLock::new(|| CODE.iter().filter_map(|text| Regex::new(text).ok()).collect());
static SPEAKERS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(SPEAKER).ok());
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

/// The name of the speaker, and where the statement begins.
pub fn speaker(line: &str) -> Option<(&str, usize)> {
    let found = SPEAKERS.as_ref()?.captures(line)?;
    let (whole, name) = (found.get(0)?, found.get(1).or_else(|| found.get(2))?);
    let words = name.as_str().to_lowercase();
    let is_label = words.split(' ').any(|word| NO_SPEAKERS.split_whitespace().any(|label| label == word));
    let last = whole.as_str().chars().next_back().map_or(0, char::len_utf8);
    // A name before a mere list is a label, too: `Descriptors: avant-garde, brutalism`.
    let is_list = found.get(2).is_none() && is_list(&line[whole.end() - last..]);
    (!is_label && !is_list).then_some((name.as_str(), whole.end() - last))
}

/// Whether a text is two or more short items with commas between them and no sentence.
fn is_list(text: &str) -> bool {
    let items: Vec<&str> = text.trim().trim_end_matches('.').split(',').collect();
    items.len() >= 3 && items.iter().all(|item| item.split_whitespace().count() <= 4)
}

/// The sentences of a text with their speakers.
pub fn sentences(text: &str) -> Vec<(String, Speaker)> {
    let mut all = Vec::new();
    let (mut paragraph, mut who, mut fence) = (String::new(), Speaker::Unknown, false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            fence = !fence;
            end(&mut paragraph, who, &mut all);
            continue;
        }
        if fence || line.trim().is_empty() || is_code(line) || found(&DONE, line).is_some() {
            end(&mut paragraph, who, &mut all);
            continue;
        }
        let mut rest = line;
        if let Some((name, at)) = speaker(line) {
            end(&mut paragraph, who, &mut all);
            who = match MACHINES.contains(&name.to_lowercase().as_str()) {
                true => Speaker::Machine,
                false => Speaker::Unknown,
            };
            rest = &line[at..];
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
    open && before.len() > 40 && line.trim_start().starts_with(|c: char| c.is_lowercase() || c.is_numeric())
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

/// Abbreviations: a full stop after these does not end a sentence. The Unicode rules do not know them.
fn ends_in_abbreviation(sentence: &str) -> bool {
    const SHORT: &[&str] = &[
        "dr.", "mr.", "mrs.", "ms.", "prof.", "st.", "e.g.", "i.e.", "vs.", "no.", "cf.", "approx.", "inc.", "ltd.",
        "jr.", "sr.", "fig.", "dept.", "est.", "p.s.", "ph.d.",
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
        assert_eq!(texts("I like tea. Dr. Lee likes milk! Ok?"), ["I like tea.", "Dr. Lee likes milk!", "Ok?"]);
        let wrapped = "We decided to keep the old parser for now because\nthe new one is slower.\nNext line";
        assert_eq!(texts(wrapped).len(), 2);
        assert_eq!(texts("- one thing\n- [ ] open\n- [x] done\n2. two"), ["one thing", "[ ] open", "two"]);
    }

    #[test]
    fn code_logs_and_quotations_are_left_out() {
        let text = "Before.\n```python\nI prefer tea\n```\nlet x = 5;\n$ cargo test\n> I never eat meat\n2026-01-01T10:00:00 I prefer\n    indented()\ngit push origin main\n| a | b |\nAfter.";
        assert_eq!(texts(text), ["Before.", "After."]);
        for line in ["Make sure it works.", "We use C++ (and some C) here.", "Go home now, please!", "Node is slow."] {
            assert!(!is_code(line), "{line}");
        }
    }

    #[test]
    fn speakers_are_distinguished_from_labels() {
        let text = "Jerry: I like tea.\nassistant: I prefer prose.\nTODO: buy milk\nUser: hello there";
        let told = sentences(text);
        assert_eq!(told[0], ("I like tea.".to_owned(), Speaker::Unknown));
        assert_eq!(told[1], ("I prefer prose.".to_owned(), Speaker::Machine));
        assert_eq!(told[2].0, "TODO: buy milk");
        assert_eq!(told[3], ("hello there".to_owned(), Speaker::Unknown));
    }
}
