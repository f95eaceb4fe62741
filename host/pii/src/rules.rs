//! The patterns of the detector and the checks that decide about each match.
//!
//! A pattern only finds an anchor, such as an `@` or a run of digits. Its check then looks around
//! the anchor and returns the finding, if it is one. The search goes on behind the anchor or the
//! finding, whichever ends later. Patterns are written so that a match ends where the search for it
//! ended, because the regex crate is linear for one search but not for many searches that each read
//! far ahead. They use ASCII word boundaries, because Unicode ones are slow and treat `電話090` as
//! one word.
//!
//! Sources: RFC 5321 (mail), ITU-T E.164 and the North American Numbering Plan (phones), ISO/IEC
//! 7812-1 and the published issuer ranges (cards), the SWIFT IBAN registry (lengths), the SSA rules
//! of 2011 (SSN), the IANA special purpose address registries, and the token formats that GitHub,
//! AWS, Slack, Google, Stripe and `OpenAI` document.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::finding::{Check, Finding, PiiKind};
use crate::{announced, email, marks, national, passwords, payment, phones, systems};

/// A compiled pattern with its check.
pub(crate) struct Rule {
    pub(crate) regex: Regex,
    pub(crate) check: Check,
}

/// All rules. A test proves that this list is as long as [`specs`], so no pattern is dropped here.
pub(crate) static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let compile = |&(pattern, check): &(&str, Check)| {
        Regex::new(pattern).ok().map(|regex| Rule { regex, check })
    };
    specs().filter_map(compile).collect()
});

/// Every pattern with its check.
pub(crate) fn specs() -> impl Iterator<Item = &'static (&'static str, Check)> {
    [
        email::SPECS,
        payment::SPECS,
        phones::SPECS,
        systems::SPECS,
        HINTS,
        announced::SPECS,
        marks::SPECS,
        national::SPECS,
        passwords::SPECS,
    ]
    .into_iter()
    .flatten()
}

/// Words that announce personal data.
const HINTS: &[(&str, Check)] = &[
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
