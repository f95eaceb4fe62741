//! Numbers that a word announces: "AHV-Nr. …", "passport no. …", "身份证号 …".
//!
//! A pattern finds the word. The check reads the words behind it, a bounded stretch, up to the
//! first thing that looks like a number of the kind. Words in between must be of those that such
//! sentences have, or a name, or end in a colon, so that "the passport library has 123456
//! downloads" announces nothing.

use std::ops::Range;

use super::check::Check;
use super::text::{ahead, ends_clean, is_compact_date, is_one_of, numbers_a_thing};
use super::{Finding, PiiKind};

/// How far behind the announcing word the number is looked for, in bytes.
const REACH: usize = 72;

/// The longest number with its separators, in characters.
const LONGEST: usize = 28;

pub(super) const SPECS: &[(&str, Check)] = &[
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
    (
        concat!(
            r"(?i)(?-u:\b)(?:phones?|mobile|cell|telephone|landline|voicemail|whatsapp|wechat|sms|call|ring|dial",
            r"|contact",
            r"|reach|handy|natel|rufnummer|telefon|telefonnummer|mobil|mobilnummer|handynummer|anrufen|erreichbar",
            r"|portable|t[ée]l[ée]phone|appelez|rappelez|joindre|cellulare|telefono)(?-u:\b)",
            r"|电话|手机|座机|微信|热线|携帯|電話|फ़ोन|फोन|मोबाइल",
        ),
        phone,
    ),
];

fn identity(text: &str, at: Range<usize>) -> Option<Finding> {
    number_behind(text, at.end, is_identity).map(|range| Finding::high(PiiKind::NationalId, range))
}

fn passport(text: &str, at: Range<usize>) -> Option<Finding> {
    let fits = |number: &str| is_identity(number) && (6..=12).contains(&alphanumerics(number));
    number_behind(text, at.end, fits).map(|range| Finding::high(PiiKind::Passport, range))
}

fn account(text: &str, at: Range<usize>) -> Option<Finding> {
    number_behind(text, at.end, is_identity).map(|range| Finding::high(PiiKind::BankAccount, range))
}

/// Ten to thirteen digits behind a word such as "landline": enough for every country that announces
/// them.
fn phone(text: &str, at: Range<usize>) -> Option<Finding> {
    let fits = |number: &str| {
        let digits = number.bytes().filter(u8::is_ascii_digit).count();
        (9..=13).contains(&digits) && digits == alphanumerics(number) && is_identity(number)
    };
    let range = number_behind(text, at.end, fits)?;
    (!numbers_a_thing(text, range.start)).then(|| Finding::high(PiiKind::Phone, range))
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

/// The first number behind `from` on the same line for which `fits` holds, if nothing in between
/// speaks against it.
fn number_behind(text: &str, from: usize, fits: impl Fn(&str) -> bool) -> Option<Range<usize>> {
    let window = ahead(text, from, REACH);
    let (mut at, mut strange) = (0, false);
    while let Some(c) = window[at..].chars().next() {
        if c.is_alphanumeric() {
            let word = &window[at..at + word_len(&window[at..])];
            if word.bytes().any(|b| b.is_ascii_digit()) || is_code(word) {
                let start = from + at;
                let behind = ahead(text, start, LONGEST);
                let number = &behind[..number_len(behind)];
                if !strange && fits(number) && ends_clean(text, start + number.len()) {
                    return Some(start..start + number.len());
                }
                // A number that does not fit ends the search, a word in capitals does not.
                if word.bytes().any(|b| b.is_ascii_digit()) {
                    return None;
                }
            }
            strange = strange || !is_filler(word);
            at += word.len();
            continue;
        }
        match c {
            // A colon says that what follows is the value, whatever the words before were.
            ':' | '=' => strange = false,
            ',' | ';' | '!' | '?' | '。' | '、' | '<' | '[' | '{' | '*' | '|' => return None,
            '.' if window[at + 1..].starts_with(' ') && !is_abbreviation(&window[..at]) => {
                return None;
            }
            _ => {}
        }
        at += c.len_utf8();
    }
    None
}

fn word_len(text: &str) -> usize {
    let cjk = |c: char| ('\u{2E80}'..='\u{9FFF}').contains(&c);
    let Some(first) = text.chars().next() else { return 0 };
    // `号E12345678`: scripts without spaces end where the number begins.
    text.find(|c: char| (!c.is_alphanumeric() && c != '\'') || cjk(c) != cjk(first))
        .unwrap_or(text.len())
}

/// A group of capitals that may start a number such as `AB 12 34 56 C`.
fn is_code(word: &str) -> bool {
    word.len() <= 5 && word.bytes().all(|b| b.is_ascii_uppercase())
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

/// Words between an announcing word and its number: function words, titles and names.
fn is_filler(word: &str) -> bool {
    const WORDS: &str = "number numbers no nr num nummer numéro numero id card is was are ist \
                         lautet est war of \
        for the his her my their your our on at in to up under unter au sur from by with und and \
        or der die das \
        des von vom du de la le les d l s n o m me mme mr mrs ms dr herr frau meine ihre seine \
        mein ihr sein sa \
        son mon ma porte é è now please bitte immer nur only back him them us text mit lautend";
    let capital = word.chars().next().is_some_and(char::is_uppercase);
    let cjk =
        word.chars().all(|c| ('\u{0900}'..='\u{9FFF}').contains(&c)) && word.chars().count() <= 8;
    capital || cjk || is_one_of(word, WORDS)
}

fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    word.chars().count() <= 3
}
