//! The patterns of the detector and the checks that decide about each match.
//!
//! A pattern only finds an anchor, such as an `@` or a run of digits. Its check then looks around
//! the anchor and returns the finding, if it is one. The search goes on behind the anchor or the
//! finding, whichever ends later. Patterns are written so that a match ends where the search for it
//! ended, because the regex crate is linear for one search but not for many searches that each read
//! far ahead.
//!
//! Sources: RFC 5321 (mail), ITU-T E.164 and the North American Numbering Plan (phones), ISO/IEC
//! 7812-1 and the published issuer ranges (cards), the SWIFT IBAN registry (lengths), the SSA rules
//! of 2011 (SSN), the IANA special purpose address registries, and the token formats that GitHub,
//! AWS, Slack, Google, Stripe and `OpenAI` document.

use super::check::Check;
use super::people::{
    card, email, iban, payment_address, phone_announced, phone_international, phone_north_american,
    ssn,
};
use super::systems::{
    assignment, ip_v4, ip_v6, pin, private_key, token, token_with_digit, url_password,
};
use super::{
    Finding, PiiKind, announced, births, marks, national, passwords, phones, places, spelled,
};
use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// A compiled pattern with its check.
pub(super) struct Rule {
    pub(super) regex: Regex,
    pub(super) check: Check,
}

/// All rules. A test proves that this list is as long as [`specs`], so no pattern is dropped here.
pub(super) static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let compile = |&(pattern, check): &(&str, Check)| {
        Regex::new(pattern).ok().map(|regex| Rule { regex, check })
    };
    specs().filter_map(compile).collect()
});

/// Every pattern with its check.
pub(super) fn specs() -> impl Iterator<Item = &'static (&'static str, Check)> {
    [
        SPECS,
        announced::SPECS,
        births::SPECS,
        marks::SPECS,
        national::SPECS,
        passwords::SPECS,
        phones::SPECS,
        places::SPECS,
        spelled::SPECS,
    ]
    .into_iter()
    .flatten()
}

/// Patterns use ASCII word boundaries, because Unicode ones are slow and treat `電話090` as one word.
const SPECS: &[(&str, Check)] = &[
    (r"@", email),
    (r"[0-9]{4,}", card),
    (r"(?-u:\b)[0-9]{3}-[0-9]{2}-[0-9]{4}(?-u:\b)", ssn),
    (r"(?:\+|(?-u:\b)00)\(?[1-9]", phone_international),
    (
        r"(?:1[-. ]?)?(?:\([2-9][0-9]{2}\)[-. ]{0,2}|[2-9][0-9]{2}[-./ ])[2-9][0-9]{2}[-. ][0-9]{4}",
        phone_north_american,
    ),
    (
        concat!(
            r"(?i)(?:(?-u:\b)(?:(?:cell|mobile|tele)? ?phone|cell|mobile|whatsapp|fax|telefon|t[eé]l[eé](?:phone|fono)|t[eé]l)",
            r"|电话|電話|手机|手機|携帯|(?-u:\b)(?:call|text|reach|ring) (?:me|us|her|him|them) (?:at|on))",
            r#"(?:[ _-]?(?:number|num|no|nr|#))?\.?(?: is)?[ :="']{0,4}"#,
        ),
        phone_announced,
    ),
    (r"(?i)(?-u:\b)[a-z]{2}[0-9]{2}", iban),
    (r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}", ip_v4),
    (r"[0-9A-Fa-f:]+:[0-9A-Fa-f:.]*", ip_v6),
    (r"(?-u:\b)(?:AKIA|ASIA)[0-9A-Z]{16}(?-u:\b)", token),
    (r"gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}", token),
    (
        r"xox[abeoprs]-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{30,}|glpat-[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{30,}",
        token,
    ),
    (r"(?-u:\b)(?:sk-[A-Za-z0-9_-]{20,}|[rs]k_(?:live|test)_[A-Za-z0-9]{16,})", token_with_digit),
    (r"(?i)(?-u:\b)bearer[ \t]+[a-z0-9._~+/=-]{20,}", token_with_digit),
    (r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?", token),
    (r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----", private_key),
    (
        concat!(
            r"(?i)(?:password|passwd|passphrase|pwd|secret",
            r"|(?:api|access|private|secret)[ _-]?key|(?:access|auth|api|bearer|refresh|bot)[ _-]?token)",
            r#"["'`*\\\]]{0,3}(?:[ \t]{0,3}(?:=>|:=|==?|:)|[ \t]is[ \t])"#,
            r"(?:[ \t]{0,3}(?:&(?:'static )?)?[a-z0-9_:<>]{1,40}[ \t]{1,3}=)?[ \t]{0,3}(?:\*\*[ \t]{0,3})?",
        ),
        assignment,
    ),
    (r"(?i)(?-u:\b)pin(?: code| number)?(?: is(?: now)?|[ ]?[:=])[ ]{1,2}", pin),
    (r"(?i)[a-z][a-z0-9+.-]{1,20}://[^ \t\r\n/:@]{1,64}:[^ \t\r\n/@:]{1,128}@", url_password),
    (
        r"(?i)@(?:ok(?:hdfcbank|icici|sbi|axis)|ybl|ibl|axl|paytm|upi|apl|yapl|barodampay)(?-u:\b)",
        payment_address,
    ),
    (
        concat!(
            r"(?i)(?-u:\b)(?:my|his|her|their|our|the user's) (?:home |work |cell |mobile |personal |private )?",
            r"(?:phone|cell|mobile|telephone|e-?mail|address|passport|ssn|social security|bank account|credit card)",
            r"(?: (?:address|number))? (?:is|was)(?-u:\b)",
        ),
        hint,
    ),
    (
        concat!(
            r"(?i)(?-u:\b)(?:date of birth|d\.?o\.?b\.?:|birth ?date:|born on (?:the |[a-z]{3,9} )?[0-9]|",
            r"(?:social security|passport|credit card|bank account|driver'?s licen[cs]e|national id) number|",
            r"mother's maiden name|home address|(?:call|text|e-?mail|reach|contact) me (?:at|on)|ssn:)",
        ),
        hint,
    ),
];

#[allow(clippy::unnecessary_wraps, reason = "it is a `Check`")]
fn hint(_: &str, at: Range<usize>) -> Option<Finding> {
    Some(Finding::possible(PiiKind::Hint, at))
}
