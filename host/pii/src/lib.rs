//! Finds personal data and credentials in plain text, grades the risk and redacts what is raw.
//!
//! The detector knows shapes, checksums and words right in front of a number or a password. It
//! finds no names, no places, no dates of birth, and no mail addresses in words. It does not undo
//! encodings (`%40`, Base64). Forms of Germany, Austria, Switzerland, France, the United Kingdom, the
//! USA, mainland China, Japan and India are known; of other countries only what has an international
//! form. [`PiiRisk::None`] does not prove that a text is harmless.
//!
//! Digits of the full-width and Arabic-Indic blocks, full-width Latin letters and punctuation,
//! typographic spaces and typographic hyphens are read as their ASCII forms, and invisible
//! characters, as copies of web pages and PDF files have them, are passed over. Ranges always refer
//! to the original text.
//!
//! Work and memory are linear in the length of the text. Patterns are beside their checks; they
//! only find anchors. A check around an anchor reads a bounded stretch of text, or text that at
//! most one other anchor of its rule reads.

use std::borrow::Cow;
use std::cmp::Reverse;

mod announced;
mod email;
mod finding;
mod marks;
mod national;
mod passwords;
mod payment;
mod phones;
mod places;
mod rules;
mod systems;
#[cfg(test)]
mod tests;
mod text;

pub use self::finding::{Finding, PiiKind, PiiRisk};

/// How often [`redact`] repeats before it gives up on a text and drops it. One pass is enough for
/// nearly all texts.
const MAX_PASSES: usize = 8;

/// What [`redact`] returns for a text that still holds raw data after [`MAX_PASSES`].
const WITHHELD: &str = "[redacted]";

/// A value behind its name is looked at as `name: value` up to this length, in bytes: a password
/// or a phone number is often recognized by its name only.
const MAX_NAMED: usize = 256;

/// Finds personal data and credentials in `text`.
///
/// The findings are sorted by start and do not overlap. The riskier of two that overlap stays. If
/// both have the same risk they become one finding over both ranges, so that redaction leaves no
/// fragment of the other: a credential if one of them is, else with the kind of the longer one.
#[must_use]
pub fn scan(text: &str) -> Vec<Finding> {
    let Some((folded, origins)) = fold(text) else {
        return settle(collect(text));
    };
    let mut found = collect(&folded);
    for finding in &mut found {
        let origin = |at: usize| origins.get(at).copied().unwrap_or(text.len());
        finding.range = origin(finding.range.start)..origin(finding.range.end);
    }
    settle(found)
}

/// The highest risk of all findings in `text`.
#[must_use]
pub fn risk(text: &str) -> PiiRisk {
    scan(text).iter().map(|finding| finding.risk).max().unwrap_or_default()
}

/// Replaces every [`PiiRisk::High`] finding by its [`PiiKind::placeholder`].
///
/// The result never has a higher risk than [`PiiRisk::Possible`], so redacting it again changes
/// nothing. A replacement can bring two remains together that then look like raw data. Such a text
/// is redacted again. If a few rounds do not settle it, it was built to resist, and the whole text
/// is replaced by `[redacted]`.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    redact_kinds(text, |_| true)
}

/// The same for credentials only.
#[must_use]
pub fn redact_secrets(text: &str) -> Cow<'_, str> {
    redact_kinds(text, |kind| kind == PiiKind::Secret)
}

/// Whether there is a credential in a text.
#[must_use]
pub fn has_secret(text: &str) -> bool {
    matches!(redact_secrets(text), Cow::Owned(_))
}

/// The value of a member as it is looked at: behind its name, if both are short.
#[must_use]
pub fn named<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    match name.is_empty() || value.len() > MAX_NAMED || name.len() > MAX_NAMED {
        true => Cow::Borrowed(value),
        // In a text the bare word is mostly about tests.
        false if places::is_pass_name(name) => Cow::Owned(format!("password: {value}")),
        false => Cow::Owned(format!("{name}: {value}")),
    }
}

/// What `redact` makes of the value of a member; `None` if it stays. The name stays. What is
/// redacted across it goes as a whole.
#[must_use]
pub fn redact_member(name: &str, value: &str, redact: fn(&str) -> Cow<'_, str>) -> Option<String> {
    let whole = named(name, value);
    let Cow::Owned(redacted) = redact(&whole) else { return None };
    let start = whole.len() - value.len();
    let rest = redacted.strip_prefix(&whole[..start]).map(str::to_owned);
    Some(rest.unwrap_or_else(|| WITHHELD.to_owned()))
}

fn redact_kinds(text: &str, is_wanted: fn(PiiKind) -> bool) -> Cow<'_, str> {
    let is_raw = |finding: &Finding| finding.risk == PiiRisk::High && is_wanted(finding.kind);
    let mut current = Cow::Borrowed(text);
    for _ in 0..MAX_PASSES {
        match redact_once(&current, is_raw) {
            Some(next) => current = Cow::Owned(next),
            None => return current,
        }
    }
    if scan(&current).iter().any(is_raw) { Cow::Borrowed(WITHHELD) } else { current }
}

/// One round of [`redact`], or `None` if there is nothing to replace.
fn redact_once(text: &str, is_raw: impl Fn(&Finding) -> bool) -> Option<String> {
    let found = scan(text);
    let mut raw = found.iter().filter(|finding| is_raw(finding)).peekable();
    raw.peek()?;
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for finding in raw {
        out.push_str(&text[done..finding.range.start]);
        out.push_str(finding.kind.placeholder());
        done = finding.range.end;
    }
    out.push_str(&text[done..]);
    Some(out)
}

/// Runs every rule over a folded text. The result is neither sorted nor free of overlaps.
fn collect(text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for rule in rules::rules_for(text) {
        let mut from = 0;
        // An empty match would not move on. A test proves that no pattern has one.
        while let Some(anchor) = rule.regex.find_at(text, from).filter(|anchor| !anchor.is_empty())
        {
            from = anchor.end();
            if let Some(finding) = (rule.check)(text, anchor.range()) {
                from = from.max(finding.range.end);
                found.push(finding);
            }
        }
    }
    found
}

/// Sorts findings and removes overlaps in the way that [`scan`] promises.
fn settle(found: Vec<Finding>) -> Vec<Finding> {
    let (raw, weak): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|finding| finding.risk == PiiRisk::High);
    let mut settled = merge(raw);
    let mut weak = merge(weak);
    weak.retain(|finding| {
        let next = settled.partition_point(|other| other.range.end <= finding.range.start);
        settled.get(next).is_none_or(|other| other.range.start >= finding.range.end)
    });
    settled.append(&mut weak);
    settled.sort_by_key(|finding| finding.range.start);
    settled
}

/// Joins overlapping findings of one risk. A credential gives the group its kind, or else the
/// longest: `https://x:TOKEN@host` ends like a mail address.
fn merge(mut found: Vec<Finding>) -> Vec<Finding> {
    found.sort_by_key(|finding| (finding.range.start, Reverse(finding.range.end)));
    let mut merged: Vec<Finding> = Vec::with_capacity(found.len());
    let mut longest = 0;
    for finding in found {
        let len = finding.range.len();
        match merged.last_mut() {
            Some(last) if finding.range.start < last.range.end => {
                last.range.end = last.range.end.max(finding.range.end);
                let is_secret = |kind| kind == PiiKind::Secret;
                if !is_secret(last.kind) && (len > longest || is_secret(finding.kind)) {
                    (last.kind, longest) = (finding.kind, len);
                }
            }
            _ => {
                longest = len;
                merged.push(finding);
            }
        }
    }
    merged
}

/// Rewrites typographic variants as ASCII, and leaves out what is invisible. Returns the new text
/// and, for each of its bytes, the offset of the character it came from. `None` means that the text
/// can be read as it is, which is the usual case.
fn fold(text: &str) -> Option<(String, Vec<usize>)> {
    if text.is_ascii() || text.chars().all(|c| !is_invisible(c) && fold_char(c) == c) {
        return None;
    }
    let mut folded = String::with_capacity(text.len());
    let mut origins = Vec::with_capacity(text.len());
    for (at, c) in text.char_indices().filter(|(_, c)| !is_invisible(*c)) {
        folded.push(fold_char(c));
        origins.resize(folded.len(), at);
    }
    Some((folded, origins))
}

/// Whether a character takes no place: soft hyphens, joiners, directions and tags.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{00AD}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
        | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{E0000}'..='\u{E0FFF}' | '\u{2800}'
        | '\u{FFF0}'..='\u{FFFB}' | '\u{13430}'..='\u{13455}')
}

/// The ASCII form of one character, or the character itself.
fn fold_char(c: char) -> char {
    let ascii =
        |base: u32, zero: u8| u8::try_from(u32::from(c) - base).map_or(c, |n| char::from(zero + n));
    match c {
        '\u{FF01}'..='\u{FF5E}' => ascii(0xFF01, b'!'),
        '\u{0660}'..='\u{0669}' => ascii(0x0660, b'0'),
        '\u{06F0}'..='\u{06F9}' => ascii(0x06F0, b'0'),
        '\u{00A0}' | '\u{2007}' | '\u{2009}' | '\u{202F}' | '\u{3000}' => ' ',
        // No em dash: it separates words, so it must not tie a number to the word behind it.
        '\u{2010}'..='\u{2013}' | '\u{2212}' => '-',
        _ => c,
    }
}
