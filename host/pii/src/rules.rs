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
use crate::{announced, email, marks, national, passwords, payment, phones, places, systems};

/// A compiled pattern with its check.
pub(crate) struct Rule {
    pub(crate) regex: Regex,
    pub(crate) check: Check,
}

impl Rule {
    /// Compiled patterns with their checks. A test proves that each compiles.
    fn of<'a>(specs: impl Iterator<Item = &'a (&'static str, Check)>) -> Vec<Self> {
        let compile = |&(pattern, check): &(&str, Check)| {
            Regex::new(pattern).ok().map(|regex| Self { regex, check })
        };
        specs.filter_map(compile).collect()
    }
}

/// The rules for every text.
static ALWAYS: LazyLock<Vec<Rule>> = LazyLock::new(|| Rule::of(always()));
/// The rules for texts with one of [`PLACE_WORDS`]: most have none, and each rule is a search.
static PLACES: LazyLock<Vec<Rule>> = LazyLock::new(|| Rule::of(places::SPECS.iter()));
/// What every pattern of [`places`] finds has one of these words.
static PLACE_WORDS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("(?i)pass|secret|token|key|curl|cookie|pw").ok());

/// The rules that can find something in a text.
pub(crate) fn rules_for(text: &str) -> impl Iterator<Item = &'static Rule> {
    let has_place = PLACE_WORDS.as_ref().is_none_or(|words| words.is_match(text));
    ALWAYS.iter().chain(PLACES.iter().filter(move |_| has_place))
}

/// Every pattern with its check.
#[cfg(test)]
pub(crate) fn specs() -> impl Iterator<Item = &'static (&'static str, Check)> {
    always().chain(places::SPECS)
}

fn always() -> impl Iterator<Item = &'static (&'static str, Check)> {
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
