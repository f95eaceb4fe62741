//! Personal data and credentials in a text: the taxonomy's levels 0 to 2, and redaction.
//!
//! It knows shapes and checksums, not people: names are no finding, for a profile is made of them. Spelled-out forms
//! (`joe at example dot com`) and encodings are not undone. Level 0 is no proof that a text is harmless.

mod checks;

use std::ops::Range;
use std::sync::LazyLock;

use regex_lite::Regex;

use checks::{always, announced_number, card, email, iban, ip_v4, ip_v6, phone, secret_value, ssn};

/// What looks at a match and says which part of it is raw data, as a range within the match.
type Check = fn(&str) -> Option<Range<usize>>;

/// Raw data: the placeholder that replaces it, how to find it, and what else must be so.
const RAW: &[(&str, &str, Check)] = &[
    (
        "[SECRET]",
        r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{22,}|\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bAIza[A-Za-z0-9_-]{30,}|\bsk-[A-Za-z0-9_-]{20,}|\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|\bglpat-[A-Za-z0-9_-]{20,}|\bnpm_[A-Za-z0-9]{30,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",
        always,
    ),
    ("[SECRET]", r"(?i)\bbearer[ \t]+[a-z0-9._~+/=-]{20,}", always),
    (
        "[SECRET]",
        r#"(?i)\b(?:[a-z]+[_-])*(?:password|passwd|passphrase|passcode|pwd|pin(?: code)?|secret|api[ _-]?key|(?:access|private|secret)[ _-]?key|(?:access|auth|api|refresh|bot)?[ _-]?token)["'`]{0,2}(?: ?(?:=>|:=|==?|:) ?| is (?:now )?)["'`]?[^\s"'`,;\[\]<>(){}]{4,}"#,
        secret_value,
    ),
    ("[EMAIL]", r#"[^\s@<>()\[\]{}",:;=/|\\*]+@[^\s@<>()\[\]{}",:;=/|\\*!?']+"#, email),
    ("[IBAN]", r"\b[A-Za-z]{2}[0-9]{2}(?: ?[A-Za-z0-9]){11,30}\b", iban),
    ("[CARD]", r"\b[0-9](?:[ -]?[0-9]){12,18}\b", card),
    ("[SSN]", r"\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b", ssn),
    ("[PHONE]", r"(?:\+|\b00)\(?[1-9][0-9 ().\u{a0}\u{2010}-\u{2013}/-]{5,20}[0-9]", phone),
    ("[PHONE]", r"(?:\([2-9][0-9]{2}\) ?|\b(?:1[-. ])?[2-9][0-9]{2}[-. ])[2-9][0-9]{2}[-. ][0-9]{4}\b", always),
    (
        "[PHONE]",
        r"(?i)\b(?:phone|telephone|tel|mobile|cell|fax|whatsapp|(?:call|text|reach|ring) (?:me|us|her|him|them))(?: ?(?:number|num|no|nr))?\.?(?: is| at| on)?[ :=#(+-]{1,4}[0-9](?:[ ()./-]{0,2}[0-9]){6,14}",
        announced_number,
    ),
    (
        "[PASSPORT]",
        r"(?i)\bpassport(?: (?:number|no\.?|id))?(?: is)?[ :#=]{1,3}[a-z]{0,2}[0-9]{6,9}\b",
        announced_number,
    ),
    ("[IP_ADDRESS]", r"\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b", ip_v4),
    ("[IP_ADDRESS]", r"(?i)\b[0-9a-f]{1,4}(?::{1,2}[0-9a-f]{1,4}){2,7}\b", ip_v6),
    (
        "[ADDRESS]",
        r"\b[0-9]{1,5}[a-zA-Z]?,? (?:[NSEW]\.? )?(?:[A-Z][\w'.-]*,? ){1,4}(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Boulevard|Blvd|Drive|Dr|Court|Ct|Square|Sq|Terrace|Place|Pl|Way|Crescent|Close|Highway|Hwy)\b\.?",
        always,
    ),
    (
        "[ADDRESS]",
        r"\b[A-Z\u{c4}\u{d6}\u{dc}][\w\u{df}\u{e4}\u{f6}\u{fc}-]*(?:stra\u{df}e|strasse|str\.|weg|platz|gasse|allee|straat|laan) [0-9]{1,4}[a-z]?\b",
        always,
    ),
];

/// What a private key begins with (RFC 7468), and the whole of it.
const KEY: &str = "-----BEGIN ";
const PRIVATE_KEY: &str =
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-[^-])*(?:-----END [A-Z0-9 ]{0,40}-----)?";

/// What may have been raw data, or announces some: level 1.
const POSSIBLE: &str = r"(?i)[\[<{]{1,2}(?:e-?mail|phone|mobile|card|credit[ _-]card|iban|ssn|ip|ip[ _-]address|secret|password|token|api[ _-]?key|passport|address|name|person|pii|redacted|masked|removed|hidden|redacted)(?:[ _-]?(?:address|number|redacted|removed|[0-9]{1,3}))?[\]>}]{1,2}|[*\u{2022}]{3,}[ -]?[0-9]{2,4}\b|\b[x*]{3}[- ][x*]{2}[- ][0-9]{4}\b|\b[a-z0-9]?\*{2,}[a-z0-9]?@|\bmy (?:home |work |cell |mobile |private )?(?:phone|e-?mail|address|passport|ssn|social security|bank account|credit card)(?: (?:address|number))? is\b|\bdate of birth\b|\b(?:social security|passport|credit card|bank account|driver'?s licen[cs]e|national id) number\b|\bmother's maiden name\b|\bhome address\b";

/// How often [`redact`] repeats: a replacement can bring remains together that look like raw data.
const PASSES: usize = 8;

static RULES: LazyLock<Vec<(&'static str, Regex, Check)>> = LazyLock::new(|| {
    RAW.iter().filter_map(|(name, pattern, check)| Some((*name, Regex::new(pattern).ok()?, *check))).collect()
});
static KEYS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(PRIVATE_KEY).ok());
static HINTS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(POSSIBLE).ok());

/// The highest level in a text: 0 nothing, 1 redacted or announced, 2 raw.
pub(crate) fn level(text: &str) -> u8 {
    if !raw(text).is_empty() {
        return 2;
    }
    u8::from(HINTS.as_ref().is_some_and(|hints| hints.is_match(text)))
}

/// What raw data there is, by the names of the placeholders, for a message.
pub(crate) fn found(text: &str) -> String {
    let mut names: Vec<&str> = raw(text).into_iter().map(|(_, name)| name).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

/// The text with every piece of raw data replaced by its placeholder. Never of level 2.
pub(crate) fn redact(text: &str) -> String {
    let mut current = text.to_owned();
    for _ in 0..PASSES {
        let found = raw(&current);
        if found.is_empty() {
            return current;
        }
        let (mut next, mut done) = (String::with_capacity(current.len()), 0);
        for (range, name) in found {
            next.push_str(&current[done..range.start]);
            next.push_str(name);
            done = range.end;
        }
        next.push_str(&current[done..]);
        current = next;
    }
    // It was built to resist.
    if raw(&current).is_empty() { current } else { "[redacted]".to_owned() }
}

/// Where raw data stands, in order, without overlaps: of two that overlap the one that begins first grows.
fn raw(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let mut found: Vec<(Range<usize>, &'static str)> = Vec::new();
    if text.contains(KEY) {
        let keys = KEYS.iter().flat_map(|keys| keys.find_iter(text));
        found.extend(keys.map(|key| (key.range(), "[SECRET]")));
    }
    // All other shapes are within a line, and most lines have nothing that one could begin with.
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let has_digit = line.bytes().any(|byte| byte.is_ascii_digit());
        for (name, pattern, check) in RULES.iter() {
            let is_possible = match *name {
                "[EMAIL]" => line.contains('@'),
                "[SECRET]" => has_digit || line.bytes().filter(u8::is_ascii_graphic).count() > 20,
                _ => has_digit,
            };
            if is_possible {
                look(line, start, name, pattern, *check, &mut found);
            }
        }
        start += line.len();
    }
    found.sort_by_key(|(range, _)| (range.start, range.end));
    let mut merged: Vec<(Range<usize>, &'static str)> = Vec::with_capacity(found.len());
    for (range, name) in found {
        match merged.last_mut() {
            Some((last, _)) if range.start < last.end => last.end = last.end.max(range.end),
            _ => merged.push((range, name)),
        }
    }
    merged
}

/// Every place in a line that begins at `start` where one rule finds something.
fn look(
    line: &str,
    start: usize,
    name: &'static str,
    pattern: &Regex,
    check: Check,
    found: &mut Vec<(Range<usize>, &'static str)>,
) {
    let mut from = 0;
    while let Some(at) = pattern.find_at(line, from) {
        match check(at.as_str()) {
            Some(part) => {
                from = at.start() + part.end;
                found.push((start + at.start() + part.start..start + from, name));
            }
            // What is no finding may have one behind its first word.
            None => {
                let word = at.as_str().find(|c: char| !c.is_alphanumeric()).unwrap_or(at.len());
                let first = at.as_str().chars().next().map_or(1, char::len_utf8);
                from = at.start() + word.max(first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn raw_data_is_found_and_redacted() {
        assert_eq!(RULES.len(), RAW.len(), "a pattern cannot be read");
        for (text, redacted) in [
            ("write to ann.lee@example.org.", "write to [EMAIL]."),
            ("call +49 (30) 1234-5678 today", "call [PHONE] today"),
            ("or 415-555-0132", "or [PHONE]"),
            ("my cell: 0171 2345678", "my cell: [PHONE]"),
            ("card 4111 1111 1111 1111 ok", "card [CARD] ok"),
            ("4111 1111 1111 1111 0, or 4111-1111-1111-1111 123", "[CARD] 0, or [CARD] 123"),
            ("+49 171 2345678 123456", "[PHONE] 123456"),
            ("DE89 3704 0044 0532 0130 00 to be paid", "[IBAN] to be paid"),
            ("pay DE89 3704 0044 0532 0130 00 now", "pay [IBAN] now"),
            ("ssn 123-45-6789", "ssn [SSN]"),
            ("from 93.184.216.34", "from [IP_ADDRESS]"),
            ("at 2606:2800:220:1:248:1893:25c8:1946", "at [IP_ADDRESS]"),
            ("key AKIAIOSFODNN7EXAMPLE", "key [SECRET]"),
            ("password: hunter2x", "password: [SECRET]"),
            ("the api key is x9f3k2l1m", "the api key is [SECRET]"),
            ("I live at 12 Baker Street.", "I live at [ADDRESS]"),
            ("Hauptstra\u{df}e 5 in Berlin", "[ADDRESS] in Berlin"),
            ("passport number X1234567", "passport number [PASSPORT]"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nok", "[SECRET]\nok"),
            ("one\nann@example.org\ntwo", "one\n[EMAIL]\ntwo"),
        ] {
            assert_eq!(level(text), 2, "{text}");
            assert_eq!(redact(text), redacted);
            assert!(level(&redact(text)) < 2, "{text}");
        }
    }

    #[test]
    fn what_is_none_is_none() {
        for text in [
            "git@github.com is a remote",
            "name@1.2.3 and icon@2x.png",
            "version 1.2.3.4",
            "127.0.0.1 and 10.0.0.7",
            "at 10:30:15 on 2026-03-01",
            "the token is expired",
            "12 ways to sort",
            "order 1234567890123",
            // The first twelve digits have a valid check digit; they are too few.
            "number 4222 2222 2222 1",
            // Hashes with the check number of an account: of their start, and of the whole.
            "memory-de89370400440532013000ffffffffff",
            "memory-be83750cc1548fc43be7855ee6c26d5e",
            "a ratio of 16:9",
            "I need 3 lists",
            "it is mobile.\",\"at\":\"2026-12-21T22:56:02Z",
            "text me on 2026-12-21",
        ] {
            assert_eq!(level(text), 0, "{text}: {}", found(text));
        }
        for text in ["my email is [EMAIL]", "card ****1234", "her date of birth"] {
            assert_eq!(level(text), 1, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_redacted_is_never_raw(text in "[ -~]{0,80}", number in "[0-9 +().-]{0,40}", mail in "[a-z.@]{0,20}") {
            for text in [text.clone(), number.clone(), mail.clone(), format!("{text}{number}@{mail}")] {
                prop_assert!(level(&redact(&text)) < 2, "{}", redact(&text));
            }
        }
    }
}
