//! Dates of birth: a full date behind a word such as "born", or in front of one.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::check::Check;
use super::text::ahead;
use super::{Finding, PiiKind};

/// How far behind the word a date may begin, in bytes.
const REACH: usize = 28;

/// The longest date, in bytes: "the twenty-first" is not read, "September 30th, 1985" is.
const LONGEST: usize = 36;

pub(super) const SPECS: &[(&str, Check)] = &[
    (
        concat!(
            r"(?i)(?-u:\b)(?:born|geboren|geb\.|geburts(?:datum|tag)|n[ée]e?(?:\(e\))? le|date de naissance",
            r"|d\.?o\.?b\.?",
            r"|date of birth|birth ?da(?:te|y)|nat[oa] il|data di nascita|nacid[oa] el|fecha de nacimiento)",
            r"|出生|生日|生于|生年月日|誕生日|जन्म",
        ),
        behind,
    ),
    (
        concat!(
            r"(?:(?:19|20)[0-9]{2}|(?:大正|昭和|平成|令和)[0-9元]{1,2}) ?年 ?[0-9]{1,2} ?月 ?[0-9]{1,2} ?日",
            r"(?:出生|生まれ|生,|生れ|誕生)",
        ),
        before_word,
    ),
];

/// A date with its year, in digits or with the name of a month.
static DATE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = concat!(
        r"(?-u:\b)(?:(?:19|20)[0-9]{2}[-./][01]?[0-9][-./][0-3]?[0-9]",
        r"|[0-3]?[0-9][./-] ?[01]?[0-9][./-] ?(?:(?:19|20)[0-9]{2}|[0-9]{2})",
        r"|[0-3]?[0-9](?:\.|st|nd|rd|th|er)? (?:of |de )?[A-Za-zÀ-ɏ]{3,10}\.?,? (?:de )?(?:19|20)[0-9]{2}",
        r"|[A-Za-zÀ-ɏ]{3,10}\.? [0-3]?[0-9](?:st|nd|rd|th)?,? (?:19|20)[0-9]{2})(?-u:\b)",
        r"|(?:(?:19|20)[0-9]{2}|(?:大正|昭和|平成|令和)[0-9元]{1,2}) ?年 ?[0-9]{1,2} ?月 ?[0-9]{1,2} ?日",
    );
    Regex::new(pattern).ok()
});

fn behind(text: &str, at: Range<usize>) -> Option<Finding> {
    // "newborn" and "geboren" inside of a longer word announce nothing.
    let inside = text[at.end..].starts_with(|c: char| c.is_ascii_alphabetic());
    let date = DATE.as_ref()?.find(ahead(text, at.end, REACH + LONGEST)).filter(|_| !inside)?;
    let gap = &text[at.end..at.end + date.start()];
    let near = gap.len() <= REACH && !gap.contains([';', '!', '?']) && !gap.contains(". ");
    near.then(|| Finding::high(PiiKind::BirthDate, at.end + date.start()..at.end + date.end()))
}

fn before_word(text: &str, at: Range<usize>) -> Option<Finding> {
    let end = at.start + text[at.clone()].find('日').map_or(at.len(), |day| day + '日'.len_utf8());
    Some(Finding::high(PiiKind::BirthDate, at.start..end))
}
