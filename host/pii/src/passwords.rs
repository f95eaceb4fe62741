//! Passwords that people tell: `my password is hunter2`, `password: s3cret`, `密码是…`.
//!
//! `assignment` of `systems` finds long values of any credential. Here the word is a
//! password's, so a short value with a digit is one, too. A word of letters only is one if it is
//! somebody's (`my password is swordfish`) and does not say how a password is (`my password is
//! weak`).

use std::ops::Range;

use crate::finding::{Check, Finding, PiiKind};
use crate::systems::{is_placeholder, is_reference};
use crate::text::{ahead, behind, is_one_of, words_before};

/// The longest value that is looked at, in bytes.
const LONGEST: usize = 64;
/// A shorter value is none.
const SHORTEST: usize = 4;

pub(crate) const SPECS: &[(&str, Check)] = &[
    (
        concat!(
            r"(?i)(?-u:\b)(?:password|passwd|passphrase|passcode|pwd)(?: (?:for|to|of|at|on) (?:[0-9A-Za-z_À-鿿'.-]{1,20} ){0,3}[0-9A-Za-z_À-鿿'.-]{1,20})?",
            r#"["'`*]{0,3}(?: is(?: now| still| just)?:? {1,2}| ?[:=]\*{0,2} {0,2})["'`*]{0,2}"#,
        ),
        told,
    ),
    (r#"(?:密码|密碼|口令)[^\n,.。:=是为]{0,8}(?:是|为|:|=) {0,2}["'“「]?"#, told),
    (
        concat!(
            r"(?i)(?-u:\b)(?:my|our|his|her|their|[a-z]{2,20}'s) (?:[a-z-]{1,16} ){0,2}(?:passwords?|passphrase|passcode)(?-u:\b)",
            r"|[我他她](?:们)?的?[^\n,.。我他她]{0,6}(?:密码|密碼)",
        ),
        mentioned,
    ),
];

/// The value behind the word, or a hint if it is somebody's.
fn told(text: &str, at: Range<usize>) -> Option<Finding> {
    let rest = ahead(text, at.end, LONGEST);
    let ends = |c: char| !c.is_ascii_graphic() || matches!(c, '"' | '`' | '&' | '\\');
    let value = &rest[..rest.find(ends).unwrap_or(rest.len())];
    let value =
        value.trim_end_matches([',', '.', ';', ':', '!', '?', ')', ']', '}', '\'', '*', '>']);
    // `hunter2,别告诉别人`: the comma ends a value only where the text goes on without blanks.
    let value = value.split([',', ';']).next().unwrap_or(value);
    let behind = &rest[value.len()..];
    let range = at.end..at.end + value.len();
    if is_password(&text[at.clone()], value, behind, is_somebodys(text, at.start)) {
        return Some(Finding::high(PiiKind::Secret, range));
    }
    is_somebodys(text, at.start).then(|| Finding::possible(PiiKind::Hint, at.start..at.end))
}

/// The word without a value. What stands behind a colon or "is" is judged by [`told`].
fn mentioned(text: &str, at: Range<usize>) -> Option<Finding> {
    let rest = ahead(text, at.end, 4);
    let has_value = ["是", "为", ":", " :", "=", " ="].iter().any(|sign| rest.starts_with(sign))
        || rest.starts_with(" is ");
    (!has_value).then(|| Finding::possible(PiiKind::Hint, at))
}

fn is_somebodys(text: &str, start: usize) -> bool {
    let own = words_before(text, start).take(3).any(|word| is_one_of(word, "my our his her their"));
    own || behind(text, start, 24).contains(['我', '他', '她'])
}

/// Whether a value can be a password, where its place says that it is one.
pub(crate) fn looks_like_password(value: &str) -> bool {
    is_password("password:", value, "", false)
}

/// `announced` is the word with its sign, `behind` is what follows the value.
fn is_password(announced: &str, value: &str, behind: &str, is_own: bool) -> bool {
    let lower = value.to_ascii_lowercase();
    let is_prose = !announced.contains([':', '=']);
    let is_hidden = ["***", "xxxx", "redacted", "placeholder", "your", "changeme"]
        .iter()
        .any(|part| lower.contains(part));
    // `cfg.pw1`, `sha1::Digest`: what code takes a value from.
    let is_path = !is_prose
        && value.contains(['.', ':'])
        && value.chars().all(|c| c.is_alphanumeric() || "_.:".contains(c));
    if value.len() < SHORTEST
        || is_hidden
        || is_path
        || value.contains(['(', ')', '[', ']', '{', '}', '<', '>'])
        || is_placeholder(value)
        || is_reference(value, false)
        || is_measure(&lower, behind)
        || is_method(&lower)
    {
        return false;
    }
    let has_digit = value.bytes().any(|b| b.is_ascii_digit());
    let has_sign = value.len() >= 6 && value.contains(['@', '#', '$', '^', '*', '!', '+', '~']);
    let is_word = value.bytes().all(|b| b.is_ascii_alphabetic());
    let is_end = behind
        .trim_start_matches(['\'', '"', '`', '*'])
        .chars()
        .next()
        .is_none_or(|c| ".,;!".contains(c));
    let is_chinese = announced.ends_with(|c: char| !c.is_ascii());
    has_digit
        || has_sign
        || (is_word && (is_chinese || is_own && is_prose && is_end) && !is_state(&lower))
}

/// `16-char`, `90days`, `100%`, `1024 bits`.
fn is_measure(value: &str, behind: &str) -> bool {
    const UNITS: &str = "char chars character characters letters digit digits word words day days \
                         hours minutes weeks \
        months years bit bits byte bytes times percent th st nd rd";
    let unit = value.trim_start_matches(|c: char| c.is_ascii_digit() || c == '+' || c == '.');
    if unit.len() == value.len() {
        return false;
    }
    let next =
        behind.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    let unit = unit.trim_start_matches('-');
    unit == "%"
        || is_one_of(
            if unit.is_empty() { next } else { unit.split('-').next().unwrap_or(unit) },
            UNITS,
        )
}

/// How a password is kept or encoded.
fn is_method(value: &str) -> bool {
    const METHODS: [&str; 19] = [
        "utf", "sha1", "sha2", "sha3", "sha5", "sha-", "md5", "base64", "base32", "bcrypt",
        "argon2", "pbkdf2", "oauth2", "aes", "rsa", "latin1", "x509", "ed25519", "rot13",
    ];
    METHODS.iter().any(|method| value.starts_with(method))
}

/// How a password is, rather than what.
fn is_state(value: &str) -> bool {
    const STATES: &str = "wrong weak strong safe secure secret invalid incorrect lost gone empty \
                          missing fine okay good \
        correct right bad stolen hidden unknown blank there here below above private confidential \
        public broken unique \
        mandatory temporary permanent outdated short long simple complex easy hard different same \
        stale null none \
        true false unsafe insecure terrible horrible awful impossible ready pending better best \
        worse mine yours \
        string text null nothing something anything everything everywhere known written";
    is_one_of(value, STATES)
        || value.ends_with("ed")
        || value.ends_with("ing")
        || value.ends_with("able")
}
