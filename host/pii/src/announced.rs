//! Numbers that a word announces: "AHV-Nr. …", "passport no. …", "身份证号 …".
//!
//! A pattern finds the word. The number must follow it, with nothing between but words such as
//! "number is", so that "the passport library has 123456 downloads" announces nothing.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::finding::{Check, Finding, PiiKind};
use crate::text::{ahead, ends_clean, is_compact_date};

/// What may stand between a word and its number.
static BETWEEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let pattern = concat!(
        r"(?i)^(?:[ _-]?(?:card|id|numbers?|num|no|nr|nummer|num[ée]ro|code)(?-u:\b)|[ _-]?#| ?n°|号码?|號碼?|番号)*",
        // A colon says that the value follows, whatever the words before were.
        r#"(?:[^0-9:;,.!?\n]{0,40}:|\.?(?: (?:is|was|ist|lautet|war|est|è|now|le))*[是为はが]? ?[=#]?)[ "']{0,3}"#,
    );
    Regex::new(pattern).ok()
});

/// The longest number with its separators, in bytes.
const LONGEST: usize = 28;

pub(crate) const SPECS: &[(&str, Check)] = &[
    (
        concat!(
            r"(?i)(?-u:\b)(?:social security|ssn|s\.s\.n\.|itin|tin|national insurance|nino|ni (?:number|no)|nhs",
            r"|utr|aadhaar|aadhar",
            r"|voter[' ]?s? (?:id|card)|epic no|driv(?:er'?s?|ing) licen[cs]e|dl no|medicare|medicaid",
            r"|national id(?:entity)?",
            r"|identity card|id card|tax(?:payer)? id|residence permit|green card|alien registration|a-number|mrn",
            r"|medical record|patient (?:id|number|no)",
            r"|steuer-?id(?:entifikation)?(?:s?-?n(?:umme)?r)?|steuer-?n(?:umme)?r|idnr",
            r"|(?:sozial|renten|kranken)?versicher(?:ungs|ten)-?n(?:umme)?r|sozialversicherung|svnr|sv-n(?:umme)?r",
            r"|(?:personal)?ausweis(?:-?n(?:umme)?r)?|f(?:ü|ue)hrerschein(?:-?n(?:umme)?r)?|aufenthaltstitel|ahv|avs",
            r"|s[ée]curit[ée] sociale|nir|num[ée]ro fiscal|carte (?:nationale )?d'identit[ée]|carte vitale",
            r"|permis de conduire|titre de s[ée]jour|codice fiscale|carta d'identit[àa]|patente)(?-u:\b)",
        ),
        identity,
    ),
    (r"(?-u:\b)(?:PAN|SIN|CURP|DNI|NIE|BSN|PESEL)(?-u:\b)", identity),
    (
        concat!(
            r"身份证|身分證|通行证|驾驶证|驾照|居留证|社保|社会保障|マイナンバー|個人番号|免許証|年金番号|在留カード|保険証",
            r"|आधार|पैन|護照號",
        ),
        identity,
    ),
    (
        r"(?i)(?:passport|reisepass|passeport|passaporto|pasaporte)|护照|護照|旅券|パスポート",
        passport,
    ),
    (
        concat!(
            r"(?i)(?-u:\b)(?:(?:bank )?account (?:number|num|no|#)|a/c|acct|konto-?n(?:umme)?r|kontonummer|sort code",
            r"|routing|aba|num[ée]ro de compte|ifsc)(?-u:\b)|银行卡|卡号|账号|帳號|口座|普通預?金?",
        ),
        account,
    ),
];

fn identity(text: &str, at: Range<usize>) -> Option<Finding> {
    number_behind(text, at.end, 22).map(|range| Finding::high(PiiKind::NationalId, range))
}

fn passport(text: &str, at: Range<usize>) -> Option<Finding> {
    number_behind(text, at.end, 12).map(|range| Finding::high(PiiKind::Passport, range))
}

fn account(text: &str, at: Range<usize>) -> Option<Finding> {
    number_behind(text, at.end, 22).map(|range| Finding::high(PiiKind::BankAccount, range))
}

/// The number behind `from`, of at most so many letters and digits.
fn number_behind(text: &str, from: usize, most: usize) -> Option<Range<usize>> {
    let between = BETWEEN.as_ref()?.find(ahead(text, from, LONGEST))?;
    let start = from + between.end();
    let behind = ahead(text, start, LONGEST);
    let end = start + number_len(behind);
    let number = &text[start..end];
    (is_identity(number) && alphanumerics(number) <= most && ends_clean(text, end))
        .then_some(start..end)
}

fn alphanumerics(number: &str) -> usize {
    number.bytes().filter(u8::is_ascii_alphanumeric).count()
}

/// Letters and digits, at least five of them digits, that are no date and no version.
fn is_identity(number: &str) -> bool {
    let values: Vec<u8> = number.bytes().filter(u8::is_ascii_digit).map(|b| b - b'0').collect();
    let groups: Vec<&str> = number.split([' ', '-', '.', '/']).collect();
    let lens: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let numeric = values.len() == alphanumerics(number);
    let date = numeric
        && (matches!(lens[..], [4, 1..=2, 1..=2] | [1..=2, 1..=2, 4]) || is_compact_date(&values));
    // "1.250.000" is an amount.
    let amount =
        numeric && number.contains('.') && lens.len() > 1 && lens[1..].iter().all(|&len| len == 3);
    values.len() >= 5 && (6..=22).contains(&alphanumerics(number)) && !date && !amount
}

/// How much of the start of `text` is one number: groups of letters and digits with one separator
/// between them. Later groups have a digit or are one to three capitals.
fn number_len(text: &str) -> usize {
    let group = |text: &str| text.bytes().take_while(u8::is_ascii_alphanumeric).count();
    let mut end = group(text);
    loop {
        let rest = &text[end..];
        if !rest.starts_with([' ', '-', '.', '/']) {
            return end;
        }
        let next = &rest[1..1 + group(&rest[1..])];
        let spaced_word = !next.bytes().any(|b| b.is_ascii_digit());
        let capitals =
            (1..=3).contains(&next.len()) && next.bytes().all(|b| b.is_ascii_uppercase());
        if next.is_empty() || (spaced_word && !capitals) {
            return end;
        }
        end += 1 + next.len();
    }
}
