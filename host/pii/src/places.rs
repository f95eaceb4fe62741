//! Credentials whose place tells what they are: an option of a command, a header, an element, a
//! block or a member of a configuration file.

use std::ops::Range;

use crate::finding::{Check, Finding, PiiKind};
use crate::passwords::looks_like_password;
use crate::text::{ahead, is_one_of};

/// The longest value that is looked at, in bytes.
const LONGEST: usize = 4_096;

pub(crate) const SPECS: &[(&str, Check)] = &[
    // A line of `.netrc`.
    (
        r"(?i)(?-u:\b)(?:machine[ \t\r\n]{1,8}[^ \t\r\n.]{1,64}\.[^ \t\r\n]{1,64}|default)[ \t\r\n]{1,8}login[ \t\r\n]{1,8}[^ \t\r\n]{1,128}[ \t\r\n]{1,8}password[ \t\r\n]{1,8}",
        up_to_blank,
    ),
    // `curl -u user:password`, `--user user:password`.
    (r#"(?-u:\b)curl [^\n]{0,200}?(?:-u|--user)[ =]{0,2}["']?[^ \t\r\n:"']{1,64}:"#, option),
    // `--password value`, `["--password", "value"]`. `--password-stdin` is another option.
    (
        r#"(?i)--(?:password|passwd|passphrase|token|secret|(?:access|auth|api|secret)[_-](?:key|token))(?:["'][ \t]*,[ \t]*["']|[ \t]{1,3}["']?)"#,
        option,
    ),
    // `Cookie: session=…`, `Set-Cookie: …`.
    (r#"(?i)(?-u:\b)cookie["']?[ \t]{0,3}[:=][ \t]{0,3}["']?"#, cookie),
    // `<password>value</password>`.
    (
        r"(?i)<(?:[a-z]{1,20}:)?(?:password|passwd|passphrase|secret|api_?key|(?:access|auth|api)?_?token)(?: [^<>\n]{0,64})?>",
        element,
    ),
    // A block of YAML: the value is on the next line.
    (
        r"(?i)(?:password|passwd|passphrase|secret|(?:api|access|secret)[ _-]?key|token):[ \t]{0,3}[|>][+-]?[ \t]{0,3}\r?\n[ \t]{1,16}",
        line,
    ),
    // `"pass": "value"`, `DB_PASS=value`. The bare word is mostly about tests.
    (r#"(?i)["'](?:[a-z0-9]{1,20}[_-])?(?:pass|pw)["'][ \t]{0,3}[:=][ \t]{0,3}["']"#, member),
    (r#"(?-u:\b)(?:[A-Z0-9]{1,20}_){0,4}(?:PASS|PW)=["']?"#, member),
];

/// Whether a member's name is a short form of `password`, with or without what it is for: `pass`,
/// `DB_PASS`, `smtpPass`.
pub(crate) fn is_pass_name(name: &str) -> bool {
    ["pass", "Pass", "PASS", "pw", "Pw", "PW"].iter().any(|short| {
        name.strip_suffix(short).is_some_and(|of| {
            let is_capital = short.starts_with('P') && of.ends_with(|c: char| c.is_lowercase());
            (of.is_empty() || of.ends_with(['_', '-', '.', ' ']) || is_capital) && !is_a_pass(of)
        })
    })
}

/// Whether it is a pass of another kind: a filter's, a renderer's, a test's.
fn is_a_pass(of: &str) -> bool {
    const OTHERS: &str =
        "high low band all by render shader shadow depth gl test tests first second";
    let last = of.trim_end_matches(['_', '-', '.', ' ']).rsplit(['_', '-', '.', ' ']).next();
    last.is_some_and(|word| is_one_of(word, OTHERS))
}

fn up_to_blank(text: &str, at: Range<usize>) -> Option<Finding> {
    up_to(text, at.end, char::is_whitespace).filter(|found| is_value(&text[found.range.clone()]))
}

fn option(text: &str, at: Range<usize>) -> Option<Finding> {
    let found = up_to(text, at.end, |c| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '\\'))?;
    looks_like_password(&text[found.range.clone()]).then_some(found)
}

fn member(text: &str, at: Range<usize>) -> Option<Finding> {
    let quote = text[..at.end].chars().next_back().filter(|c| matches!(c, '"' | '\''));
    let ends = |c: char| quote.map_or(c.is_whitespace(), |quote| c == quote) || c == '\n';
    let found = up_to(text, at.end, ends)?;
    let name = text[at].trim_end_matches(['"', '\'', '=', ':', ' ', '\t']);
    let name = name.trim_start_matches(['"', '\'']);
    let value = &text[found.range.clone()];
    // Dates and counts are no passwords.
    let is_figure = value.bytes().all(|b| b.is_ascii_digit() || b"-/.:".contains(&b));
    (!is_figure && is_pass_name(name) && looks_like_password(value)).then_some(found)
}

fn element(text: &str, at: Range<usize>) -> Option<Finding> {
    let found = up_to(text, at.end, |c| c == '<')?;
    let is_closed = text[found.range.end..].starts_with("</");
    (is_closed && looks_like_password(text[found.range.clone()].trim())).then_some(found)
}

fn line(text: &str, at: Range<usize>) -> Option<Finding> {
    let found = up_to(text, at.end, |c| c == '\n' || c == '\r')?;
    looks_like_password(text[found.range.clone()].trim()).then_some(found)
}

/// All cookies of a header, if one of them is as long as the id of a session.
fn cookie(text: &str, at: Range<usize>) -> Option<Finding> {
    let found = up_to(text, at.end, |c| matches!(c, '\n' | '\r' | '"' | '\''))?;
    let is_id = |value: &str| {
        let is_mixed = value.bytes().any(|b| b.is_ascii_digit())
            && value.bytes().any(|b| b.is_ascii_alphabetic());
        value.len() >= 16 && is_mixed && !value.contains([' ', '/'])
    };
    let values = text[found.range.clone()].split(';').filter_map(|one| one.split_once('='));
    values.map(|(_, value)| value.trim()).any(is_id).then_some(found)
}

/// What goes on from a place up to an end, if it is not empty.
fn up_to(text: &str, start: usize, ends: impl Fn(char) -> bool) -> Option<Finding> {
    let rest = ahead(text, start, LONGEST);
    let len = rest.find(ends).unwrap_or(rest.len());
    (len > 0).then(|| Finding::high(PiiKind::Secret, start..start + len))
}

/// Whether it is no placeholder. Any other word in this place is a password.
fn is_value(value: &str) -> bool {
    value.len() > 1 && !value.starts_with(['<', '[', '{', '$', '*'])
}
