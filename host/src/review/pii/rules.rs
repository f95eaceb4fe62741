//! The patterns of the detector and the checks that decide about each match.
//!
//! A pattern only finds an anchor, such as an `@` or a run of digits. Its check then looks around the anchor and
//! returns the finding, if it is one. The search goes on behind the anchor or the finding, whichever ends later.
//! Patterns are written so that a match ends where the search for it ended, because the regex crate is linear for
//! one search but not for many searches that each read far ahead.
//!
//! Sources: RFC 5321 (mail), ITU-T E.164 and the North American Numbering Plan (phones), ISO/IEC 7812-1 and the
//! published issuer ranges (cards), the SWIFT IBAN registry (lengths), the SSA rules of 2011 (SSN), the IANA special
//! purpose address registries, and the token formats that GitHub, AWS, Slack, Google, Stripe and `OpenAI` document.

use super::{Finding, PiiKind};
use regex::Regex;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::sync::LazyLock;

/// Looks at the surroundings of an anchor in a text.
type Check = fn(&str, Range<usize>) -> Option<Finding>;

/// A compiled pattern with its check.
pub(super) struct Rule {
    pub(super) regex: Regex,
    pub(super) check: Check,
}

/// All rules. A test proves that this list is as long as [`SPECS`], so no pattern is dropped here.
pub(super) static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let compile = |&(pattern, check): &(&str, Check)| Regex::new(pattern).ok().map(|regex| Rule { regex, check });
    SPECS.iter().filter_map(compile).collect()
});

/// Patterns use ASCII word boundaries, because Unicode ones are slow and treat `電話090` as one word.
pub(super) const SPECS: &[(&str, Check)] = &[
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
            r"|电话|電話|手机|手機|携帯)",
            r#"(?:[ _-]?(?:number|num|no|nr|#))?\.?(?: is)?[ :="']{0,4}"#,
        ),
        phone_announced,
    ),
    (r"(?i)(?-u:\b)[a-z]{2}[0-9]{2}", iban),
    (r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}", ip_v4),
    (r"[0-9A-Fa-f:]+:[0-9A-Fa-f:.]*", ip_v6),
    (r"(?-u:\b)(?:AKIA|ASIA)[0-9A-Z]{16}(?-u:\b)", token),
    (r"gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}", token),
    (r"xox[abeoprs]-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{35,}", token),
    (r"(?-u:\b)(?:sk-[A-Za-z0-9_-]{20,}|[rs]k_(?:live|test)_[A-Za-z0-9]{16,})", token_with_digit),
    (r"(?i)(?-u:\b)bearer[ \t]+[a-z0-9._~+/=-]{20,}", token_with_digit),
    (r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?", token),
    (r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----", private_key),
    (
        concat!(
            r"(?i)(?:password|passwd|passphrase|pwd|secret",
            r"|(?:api|access|private|secret)[_-]?key|(?:access|auth|api|bearer|refresh|bot)[_-]?token)",
            r#"["'`*\\\]]{0,3}(?:[ \t]{0,3}(?:=>|:=|==?|:)|[ \t]is[ \t])"#,
            r"(?:[ \t]{0,3}(?:&(?:'static )?)?[a-z0-9_:<>]{1,40}[ \t]{1,3}=)?[ \t]{0,3}(?:\*\*[ \t]{0,3})?",
        ),
        assignment,
    ),
    (r#"(?i)passport(?:[ _-]?(?:number|num|no|nr|id))?["']?\.?(?: is)?[ :=#"'(]{1,4}"#, passport),
    (r"(?i)[\[<]{1,2}(?:masked|redacted(?:[ :_-][^\[\]<>\n]{0,40})?)[\]>]{1,2}|[({]{1,2}redacted[)}]{1,2}", redacted),
    (
        concat!(
            r"(?i)[\[<](?:e-?mail|phone|mobile|(?:credit[ _-]?)?card|iban|(?:us[ _-])?ssn|",
            r"ip[ _-]address|secret|password|token|api[ _-]?key|(?:us[ _-])?passport|date[ _-]of[ _-]birth|dob|person)",
            r"(?:[ _-]?(?:address|number|no|name|redacted|removed|masked|hidden|key|[0-9]{1,3})){0,3}[\]>]",
        ),
        placeholder,
    ),
    (r"\[(?:(?:FULL_|FIRST_|LAST_|USER_?)?NAME|ADDRESS|LOCATION|PII|IP)(?:_[0-9]{1,3})?\]", placeholder),
    (r"\{\{(?:EMAIL|PHONE|NAME|SSN|CREDIT_CARD|IBAN|IP|ADDRESS)(?:_[A-Z0-9]{1,10})?\}\}", redacted),
    (r"(?i)[x*•#]{3}[- ][x*•#]{2}[- ][0-9]{4}(?-u:\b)", redacted),
    (r"(?i)\(?[x*•]{3}\)?[-. ]{1,2}[x*•]{3}[-. ][0-9]{4}(?-u:\b)", redacted),
    (r"(?i)(?:[x*•]{4}[- ]){2,4}[0-9]{3,4}(?-u:\b)|[*•]{3,}-?[0-9]{3,4}(?-u:\b)", redacted),
    (
        concat!(
            r"(?i)(?-u:\b)my (?:home |work |cell |mobile |personal |private )?",
            r"(?:phone|cell|mobile|telephone|e-?mail|address|passport|ssn|social security|bank account|credit card)",
            r"(?: (?:address|number))? is(?-u:\b)",
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
fn redacted(_: &str, at: Range<usize>) -> Option<Finding> {
    Some(Finding::possible(PiiKind::Redacted, at))
}

/// Words in brackets, unless they are code: `row[phone]`, `&[Token]` or `Vec::<Email>`.
fn placeholder(text: &str, at: Range<usize>) -> Option<Finding> {
    let [bracket, first, second, ..] = *text[at.clone()].as_bytes() else { return None };
    let type_name = bracket == b'<' && first.is_ascii_uppercase() && second.is_ascii_lowercase();
    let code = match before(text, at.start, 1) {
        Some(b':') => before(text, at.start, 2) == Some(b':'),
        other => other == Some(b'&') || is_word(other),
    };
    (!code && !type_name).then(|| Finding::possible(PiiKind::Redacted, at))
}

#[allow(clippy::unnecessary_wraps, reason = "it is a `Check`")]
fn hint(_: &str, at: Range<usize>) -> Option<Finding> {
    Some(Finding::possible(PiiKind::Hint, at))
}

// Surroundings

fn byte(text: &str, at: usize) -> Option<u8> {
    text.as_bytes().get(at).copied()
}

fn is_word(byte: Option<u8>) -> bool {
    byte.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn is_digit(byte: Option<u8>) -> bool {
    byte.is_some_and(|b| b.is_ascii_digit())
}

fn before(text: &str, at: usize, back: usize) -> Option<u8> {
    at.checked_sub(back).and_then(|at| byte(text, at))
}

/// No longer word, number, UUID or ticket such as `PAP-1274` reaches into the text that starts here.
fn starts_clean(text: &str, start: usize) -> bool {
    match before(text, start, 1) {
        Some(b'-') => !is_word(before(text, start, 2)),
        Some(b'.') => !is_digit(before(text, start, 2)),
        other => !is_word(other),
    }
}

/// The counterpart of [`starts_clean`] for the end of a candidate.
fn ends_clean(text: &str, end: usize) -> bool {
    match byte(text, end) {
        Some(b'-') => !is_word(byte(text, end + 1)),
        Some(b'.') => !is_digit(byte(text, end + 1)),
        other => !is_word(other),
    }
}

/// The ASCII words on the same line just before `start`, nearest first. Looks back 40 bytes at most.
fn words_before(text: &str, start: usize) -> impl Iterator<Item = &str> {
    let from = (start.saturating_sub(40)..start).find(|&at| text.is_char_boundary(at)).unwrap_or(start);
    let line = text.get(from..start).and_then(|window| window.rsplit('\n').next()).unwrap_or_default();
    line.rsplit(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty())
}

/// Whether `list`, words with single spaces between them, has `word` in any case.
fn is_one_of(word: &str, list: &str) -> bool {
    list.split(' ').any(|known| known.eq_ignore_ascii_case(word))
}

/// Words in front of lists of numbers that can look like a phone or card number.
fn is_number_list(text: &str, start: usize) -> bool {
    const WORDS: &str = "port ports pid pids status codes lines rows columns sizes";
    words_before(text, start).next().is_some_and(|word| is_one_of(word, WORDS))
}

/// Reads groups of digits from `start` with up to three separators between them, and at most `max` digits in all.
/// A group that would exceed `max` is left out as a whole.
fn digit_groups(text: &str, start: usize, max: usize) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let (mut groups, mut total, mut at) = (Vec::new(), 0, start);
    loop {
        let len = bytes.iter().skip(at).take(max + 1 - total).take_while(|b| b.is_ascii_digit()).count();
        total += len;
        if len == 0 || total > max {
            return groups;
        }
        groups.push(at..at + len);
        let gap = bytes.iter().skip(at + len).take(4).take_while(|b| b" -./()".contains(b)).count();
        if gap == 0 || gap > 3 {
            return groups;
        }
        at += len + gap;
    }
}

fn digits(text: &str, groups: &[Range<usize>]) -> Vec<u8> {
    groups.iter().flat_map(|group| text.as_bytes()[group.clone()].iter().map(|b| b - b'0')).collect()
}

/// A compact date such as `20240115`, also with a time behind it. Takes the values of the digits.
fn is_compact_date(digits: &[u8]) -> bool {
    match *digits {
        [1, 9, _, _, m, n, d, e, ref time @ ..] | [2, 0, _, _, m, n, d, e, ref time @ ..] => {
            matches!(time.len(), 0 | 6) && (1..=12).contains(&(m * 10 + n)) && (1..=31).contains(&(d * 10 + e))
        }
        _ => false,
    }
}

// E-mail

const MASKS: [char; 2] = ['*', '•'];

fn is_mail_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || ('\u{C0}'..='\u{52F}').contains(&c) || ".-".contains(c) || MASKS.contains(&c)
}

fn email(text: &str, at: Range<usize>) -> Option<Finding> {
    // Neither side can cross another `@`, so no character is read more than twice.
    let is_local = |c: char| is_mail_char(c) || "_%+'~".contains(c);
    let local = text[..at.start].rsplit(|c| !is_local(c)).next()?;
    let domain = text[at.end..].split(|c| !is_mail_char(c)).next()?;
    let plain = local.trim_start_matches(['*', '•', '.', '-', '\'']);
    let range = |local: &str, domain: &str| at.start - local.len()..at.end + domain.len();

    // Stars in front of a longer name, or on both sides of an address, are Markdown emphasis.
    let emphasis = plain.chars().count() > 2 || domain.ends_with('*');
    let masked = plain.contains(MASKS) || (local.contains(MASKS) && (plain.is_empty() || !emphasis));
    let crossed = plain.len() > 2 && plain.chars().all(|c| matches!(c, 'x' | 'X'));
    let masked_domain = domain.rsplit_once(MASKS).is_some_and(|(_, rest)| rest.contains('.'));
    match valid_domain(domain) {
        Some(domain) if masked || crossed => Some(Finding::possible(PiiKind::Redacted, range(local, domain))),
        // `git` is an account that everybody uses for remotes.
        Some(domain) if plain.contains(char::is_alphanumeric) && plain != "git" => {
            Some(Finding::high(PiiKind::Email, range(plain, domain)))
        }
        None if masked_domain && !local.is_empty() => Some(Finding::possible(PiiKind::Redacted, range(local, domain))),
        _ => None,
    }
}

/// The longest start of `domain` that can be a mail domain. Without a list of all top-level domains this accepts
/// any two or more letters, apart from endings that are common in code and are no top-level domains.
fn valid_domain(domain: &str) -> Option<&str> {
    const NOT_TOP: &str = "png jpg jpeg gif webp svg css js ts jsx tsx json html txt log lock yaml yml toml class service \
        socket timer slice scope";
    let domain = domain.split(MASKS).next()?.split("..").next()?;
    let starts_with_digit = |label: &str| label.starts_with(|c: char| c.is_ascii_digit());
    let mut labels = domain.split('.');
    let (first, second) = (labels.next()?, labels.next()?);
    // `name@1.2.3-beta.rc` is a package version.
    if first.is_empty() || (first.bytes().all(|b| b.is_ascii_digit()) && starts_with_digit(second)) {
        return None;
    }
    let mut end = domain.len();
    loop {
        let dot = domain[..end].rfind('.').filter(|&dot| dot > 0)?;
        let label = &domain[dot + 1..end];
        let letters = label.find(|c: char| !c.is_alphabetic()).unwrap_or(label.len());
        if label.starts_with("xn--") && label.len() > 4 {
            return Some(domain[..end].trim_end_matches('-'));
        }
        // Digits right behind the letters are text that lost its space, so the letters still count.
        if label[..letters].chars().count() > 1 {
            return (!is_one_of(label, NOT_TOP)).then(|| &domain[..dot + 1 + letters]);
        }
        end = dot;
    }
}

// Cards and social security numbers

fn card(text: &str, at: Range<usize>) -> Option<Finding> {
    let groups = digit_groups(text, at.start, 19);
    let single = |pair: &[Range<usize>]| matches!(&text[pair[0].end..pair[1].start], " " | "-");
    let joined = 1 + groups.windows(2).take_while(|pair| single(pair) && pair[0].len() > 2).count();
    (1..=joined.min(groups.len())).rev().find_map(|count| {
        let range = at.start..groups[count - 1].end;
        // No issuer prints groups of one or two digits, but tables of numbers have them.
        let printed = count == 1 || groups[count - 1].len() > 2;
        let valid = printed && is_card(&digits(text, &groups[..count]));
        let clean = starts_clean(text, range.start) && ends_clean(text, range.end);
        (valid && clean && !is_number_list(text, range.start)).then(|| Finding::high(PiiKind::Card, range))
    })
}

fn is_card(digits: &[u8]) -> bool {
    let prefix = |len: usize| digits.iter().take(len).fold(0_u32, |n, &d| n * 10 + u32::from(d));
    let len = digits.len();
    let issued = match (prefix(1), prefix(2), prefix(3), prefix(4)) {
        (4, ..) => matches!(len, 13 | 16 | 19),
        (_, 34 | 37, ..) => len == 15,
        (_, 51..=55, ..) | (_, _, _, 2221..=2720 | 2200..=2204) => len == 16,
        (_, 36 | 38 | 39, ..) | (_, _, 300..=305, _) | (_, _, _, 3095) => (14..=19).contains(&len),
        (_, 62 | 65, ..) | (_, _, 644..=649, _) | (_, _, _, 6011 | 3528..=3589) => (16..=19).contains(&len),
        (_, 50 | 56..=58, ..) | (_, _, 676, _) | (_, _, _, 6304 | 6759) => (13..=19).contains(&len),
        _ => false,
    };
    issued && luhn(digits)
}

fn luhn(digits: &[u8]) -> bool {
    let double = |d: u8| if d > 4 { 2 * d - 9 } else { 2 * d };
    let sum: u32 =
        digits.iter().rev().enumerate().map(|(i, &d)| u32::from(if i % 2 == 1 { double(d) } else { d })).sum();
    sum.is_multiple_of(10)
}

fn ssn(text: &str, at: Range<usize>) -> Option<Finding> {
    let number = &text[at.clone()];
    let assigned = !number.starts_with("000") && !number.starts_with("666") && !number.starts_with('9');
    let complete = &number[4..6] != "00" && &number[7..] != "0000";
    let clean = starts_clean(text, at.start) && ends_clean(text, at.end);
    (assigned && complete && clean).then(|| Finding::high(PiiKind::Ssn, at))
}

// Phones

fn phone_international(text: &str, at: Range<usize>) -> Option<Finding> {
    let plus = text[at.clone()].starts_with('+');
    let first = at.end - 1;
    let range = dial(text, first, 8)?;
    let number = &text[range.clone()];
    let values: Vec<u8> = number.bytes().filter(u8::is_ascii_digit).map(|b| b - b'0').collect();
    let separators: Vec<u8> = number.bytes().filter(|b| !b.is_ascii_digit()).collect();
    let plausible = if plus {
        // A `+` in front of a date or a number is common in diffs and in code. 999 is no country code.
        let arithmetic = matches!(before(text, at.start, 1), Some(b'+' | b')')) || separators == b".";
        let bare = separators.is_empty() && (values.len() < 9 || is_compact_date(&values));
        !arithmetic && !bare && !values.starts_with(&[9, 9, 9])
    } else {
        // Without this, lists such as `0031 0032 0033` would be phone numbers.
        number.find(' ').is_some_and(|gap| gap < 4 && !number[gap + 1..].starts_with('0'))
    };
    // Numbers that lost the space between them still are two numbers. Sums have no spaces inside of a term.
    let glued = plus && !separators.is_empty() && is_digit(before(text, at.start, 1));
    let clean = glued || starts_clean(text, at.start);
    (plausible && clean).then(|| Finding::high(PiiKind::Phone, at.start..range.end))
}

fn phone_north_american(text: &str, at: Range<usize>) -> Option<Finding> {
    let number = &text[at.clone()];
    let local: Vec<u8> = number.bytes().filter(u8::is_ascii_digit).collect();
    let local = local.strip_prefix(b"1").unwrap_or(&local);
    // Area and exchange codes such as 911 are service numbers.
    if local[1..3] == *b"11" || local[4..6] == *b"11" {
        return None;
    }
    let spaced = number.bytes().all(|b| b.is_ascii_digit() || b == b' ');
    let in_table = spaced
        && ((before(text, at.start, 1) == Some(b' ') && is_digit(before(text, at.start, 2)))
            || (byte(text, at.end) == Some(b' ') && is_digit(byte(text, at.end + 1)))
            || (local[1..3] == *b"00" && !matches!(local[0], b'8' | b'9')));
    // "x123" is the usual way to write an extension.
    let extension = byte(text, at.end) == Some(b'x') && is_digit(byte(text, at.end + 1));
    let opened = number.starts_with('(') || starts_clean(text, at.start);
    let clean = opened && (extension || ends_clean(text, at.end));
    (clean && !in_table && !is_number_list(text, at.start)).then(|| Finding::high(PiiKind::Phone, at))
}

fn phone_announced(text: &str, at: Range<usize>) -> Option<Finding> {
    let words = text[at.clone()].to_ascii_lowercase();
    let announced =
        words.contains([':', '=', '#']) || [" is", "num", "no", "nr"].iter().any(|word| words.contains(word));
    let lead = text[at.end..].find(|c| c != '+' && c != '(').filter(|&lead| lead < 3)?;
    let range = dial(text, at.end + lead, if announced { 7 } else { 9 })?;
    Some(Finding::high(PiiKind::Phone, at.end..range.end))
}

/// The longest run of digit groups from `start` with `min` to 15 digits that can be dialled. Dates and IPv4
/// addresses are no numbers to dial.
fn dial(text: &str, start: usize, min: usize) -> Option<Range<usize>> {
    let groups = digit_groups(text, start, 15);
    let lens: Vec<usize> = groups.iter().map(ExactSizeIterator::len).collect();
    let separator = byte(text, groups.first()?.end);
    let date = matches!(lens[..], [4, 2, 2, ..] | [2, 2, 4, ..]) && matches!(separator, Some(b'-' | b'.' | b'/'));
    let address = groups.get(3).is_some_and(|last| text[start..last.end].parse::<Ipv4Addr>().is_ok());
    if date || address {
        return None;
    }
    let country_one = byte(text, start) == Some(b'1') && matches!(before(text, start, 1), Some(b'+' | b'0' | b'('));
    (1..=groups.len()).rev().find_map(|count| {
        let total: usize = lens[..count].iter().sum();
        let end = groups[count - 1].end;
        let fits = if country_one { total == 11 } else { total >= min };
        let time = lens[count - 1] == 2 && byte(text, end) == Some(b':') && is_digit(byte(text, end + 1));
        (fits && !time && ends_clean(text, end)).then_some(start..end)
    })
}

// Bank accounts and passports

/// Country codes and lengths of the SWIFT IBAN registry, with the countries that use an IBAN outside of it.
const IBAN_LENGTHS: &[(usize, &str)] = &[
    (15, "NO"),
    (16, "BE"),
    (18, "DK FI FK FO GL NL SD"),
    (19, "MK SI"),
    (20, "AT BA EE KZ LT LU MN XK"),
    (21, "CH HR LI LV"),
    (22, "BG BH CR DE GB GE IE ME RS VA"),
    (23, "AE GI IL IQ OM SO TL"),
    (24, "AD CZ ES MD PK RO SA SE SK TN VG"),
    (25, "LY PT ST"),
    (26, "IS TR"),
    (27, "BI DJ FR GR IT MC MR SM"),
    (28, "AL AZ BY CY DO GT HN HU LB NI PL SV"),
    (29, "BR EG PS QA UA"),
    (30, "JO KW MU YE"),
    (31, "MT SC"),
    (32, "LC"),
    (33, "RU"),
];

fn iban(text: &str, at: Range<usize>) -> Option<Finding> {
    let country = &text[at.start..at.start + 2];
    let len = IBAN_LENGTHS.iter().find(|(_, codes)| is_one_of(country, codes))?.0;
    let mut account = Vec::with_capacity(len);
    let mut end = at.start;
    while account.len() < len {
        match byte(text, end)? {
            b if b.is_ascii_alphanumeric() => account.push(b),
            b' ' | b'-' if is_word(before(text, end, 1)) => {}
            _ => return None,
        }
        end += 1;
    }
    // Moving the first four characters to the end and reading letters as 10 to 35 must leave 1 (ISO 7064).
    account.rotate_left(4);
    let rest = account.iter().fold(0, |rest, &b| {
        let value = char::from(b).to_digit(36).unwrap_or_default();
        (rest * if value > 9 { 100 } else { 10 } + value) % 97
    });
    (rest == 1 && ends_clean(text, end)).then(|| Finding::high(PiiKind::Iban, at.start..end))
}

fn passport(text: &str, at: Range<usize>) -> Option<Finding> {
    let number: Vec<u8> = text.bytes().skip(at.end).take(10).take_while(u8::is_ascii_alphanumeric).collect();
    let values: Vec<u8> = number.iter().filter(|b| b.is_ascii_digit()).map(|b| b - b'0').collect();
    let date = values.len() == number.len() && is_compact_date(&values);
    let plausible = (6..=9).contains(&number.len()) && values.len() > 4 && !date;
    let end = at.end + number.len();
    (plausible && ends_clean(text, end)).then(|| Finding::high(PiiKind::Passport, at.end..end))
}

// Addresses

/// Words that announce a version, an outline number or an object identifier rather than an address.
const VERSION_WORDS: &str = "version versions ver v release released releases build bump bumps bumped upgrade upgraded \
    upgrades downgrade downgraded firmware section sections chapter clause appendix oid objectidentifier rfc";

fn ip_v4(text: &str, at: Range<usize>) -> Option<Finding> {
    let ip: Ipv4Addr = text[at.clone()].parse().ok()?;
    let ahead = (before(text, at.start, 1), before(text, at.start, 2));
    let starts = match ahead {
        (Some(b'.' | b'^' | b'~'), _) => false,
        // `name-1.2.3.4` and `Product/1.2.3.4` are versions, `8.8.4.4-8.8.8.8` and `//8.8.8.8` are not.
        (Some(b'-' | b'/'), Some(b)) => !b.is_ascii_alphabetic(),
        // `==1.2.3.4` and `>=1.2.3.4` pin a package.
        (Some(b'='), Some(b)) => !b"=<>~!^".contains(&b),
        (b, _) => !is_word(b),
    };
    let ends = match (byte(text, at.end), byte(text, at.end + 1)) {
        (Some(b'.'), Some(b)) => !b.is_ascii_digit() && !b.is_ascii_lowercase(),
        (Some(b'-' | b'+'), Some(b)) => !b.is_ascii_alphabetic(),
        (b, _) => !is_word(b),
    };
    let versioned = || words_before(text, at.start).take(4).any(|word| is_one_of(word, VERSION_WORDS));
    let network = || network_bits(text, at.end).is_some_and(|bits| bits < 32 && ip.to_bits() << bits == 0);
    (starts && ends && is_public_v4(ip) && !versioned() && !network())
        .then(|| Finding::high(PiiKind::IpAddress, at.clone()))
}

fn ip_v6(text: &str, at: Range<usize>) -> Option<Finding> {
    // Longer runs cannot be an address. `::` at an end belongs to the address, a single `:` or `.` to the sentence.
    let run = text[at.clone()].trim_end_matches('.');
    let run = if run.ends_with("::") { run } else { run.trim_end_matches(':') };
    let address = if run.starts_with("::") { run } else { run.trim_start_matches(':') };
    let start = at.start + run.len() - address.len();
    let end = start + address.len();
    let ip: Ipv6Addr = if address.len() > 45 { None } else { address.parse().ok() }?;
    let network = network_bits(text, end).is_some_and(|bits| bits < 128 && ip.to_bits() << bits == 0);
    let clean = !is_word(before(text, start, 1)) && !is_word(byte(text, end));
    (clean && is_public_v6(ip) && !network).then(|| Finding::high(PiiKind::IpAddress, start..end))
}

/// The length behind an address in CIDR notation.
fn network_bits(text: &str, end: usize) -> Option<u32> {
    let rest = text.get(end..)?.strip_prefix('/')?;
    let len = rest.bytes().take(4).take_while(u8::is_ascii_digit).count();
    rest[..len].parse().ok()
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let special = ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_documentation();
    let shared = a == 100 && (64..128).contains(&b);
    let assigned = (a, b, c) == (192, 0, 0) || (a == 198 && (b == 18 || b == 19));
    // Zero is "this network", 224 and above are multicast, reserved and broadcast.
    !special && !shared && !assigned && a != 0 && a < 224
}

/// Only `2000::/3` is in public use. An embedded IPv4 address is found on its own.
fn is_public_v6(ip: Ipv6Addr) -> bool {
    let [a, b, ..] = ip.segments();
    let documentation = (a == 0x2001 && b == 0x0db8) || (a == 0x3fff && b < 0x1000);
    (0x2000..0x4000).contains(&a) && !documentation
}

// Credentials

#[allow(clippy::unnecessary_wraps, reason = "it is a `Check`")]
fn token(_: &str, at: Range<usize>) -> Option<Finding> {
    Some(Finding::high(PiiKind::Secret, at))
}

/// For prefixes that also start ordinary names, such as the class `sk-folding-cube-wrapper`.
fn token_with_digit(text: &str, at: Range<usize>) -> Option<Finding> {
    let matched = &text[at.clone()];
    let value = matched.rsplit([' ', '\t']).next().unwrap_or(matched);
    let random = |part: &str| part.len() > 11 && part.bytes().any(|b| b.is_ascii_digit());
    let found = value.split(|c: char| !c.is_ascii_alphanumeric()).any(random);
    found.then(|| Finding::high(PiiKind::Secret, at.end - value.len()..at.end))
}

/// A key block from its first to its last line. A block that was cut off ends where its Base64 text ends.
fn private_key(text: &str, at: Range<usize>) -> Option<Finding> {
    const LONGEST: usize = 16 * 1024;
    let body = &text[at.end..];
    // Every later anchor starts with dashes, so this search ends there and no text is searched twice.
    let closing = body.find("-----").filter(|&len| len < LONGEST && body[len..].starts_with("-----END "));
    let len = match closing {
        Some(len) => body[len + 9..].find("-----").filter(|&rest| rest < 64).map_or(len, |rest| len + 9 + rest + 5),
        None => base64_lines(body),
    };
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || c == '+' || c == '/';
    let material = body[..len].split(|c| !is_base64(c)).any(|part| part.len() > 15);
    material.then(|| Finding::high(PiiKind::Secret, at.start..at.end + len))
}

/// How much of the start of `body` is Base64 text in lines. Lines may be split by white space or a literal `\n`.
fn base64_lines(body: &str) -> usize {
    let mut len = 0;
    loop {
        let gap = body[len..].find(|c: char| !c.is_whitespace() && !"\\nr".contains(c)).unwrap_or(0);
        let line = &body[len + gap..];
        let end = line.find(|c: char| !c.is_ascii_alphanumeric() && !"+/=".contains(c)).unwrap_or(line.len());
        if end < 16 {
            return len;
        }
        len += gap + end;
    }
}

/// `name = value` with a name that promises a credential. The finding is the value alone.
fn assignment(text: &str, at: Range<usize>) -> Option<Finding> {
    // A rejected value may be read again by the next anchor, so only this much of it decides.
    const JUDGED: usize = 256;
    let rest = &text[at.end..];
    // A quote may have a backslash in nested JSON, or a prefix such as `b` or `r#` in code.
    let opening = rest.char_indices().take(4).find(|(_, c)| matches!(c, '"' | '\'' | '`'));
    let (lead, quote) = opening.filter(|&(lead, _)| rest[..lead].chars().all(|c| "\\bBrRfFuU@$#".contains(c))).unzip();
    let escaped = lead.is_none_or(|lead| rest[..lead].ends_with('\\'));
    let body = lead.map_or(rest, |lead| &rest[lead + 1..]);
    let ends = |c: char| c.is_whitespace() || (escaped && c == '\\') || quote.map_or(c == '&', |quote| c == quote);
    let judged = body.char_indices().find(|&(at, c)| ends(c) || at > JUDGED).map_or(body.len(), |(at, _)| at);
    let start = text.len() - body.len();
    let value = trim_code(&body[..judged], quote);
    match judge(&text[at], value, quote.is_some())? {
        PiiKind::Secret => {
            let len = body[judged..].find(ends).map_or(body.len(), |len| judged + len);
            Some(Finding::high(PiiKind::Secret, start..start + trim_code(&body[..len], quote).len()))
        }
        weak => Some(Finding::possible(weak, start..start + value.len())),
    }
}

/// Removes what code or prose puts behind a bare value.
fn trim_code(value: &str, quote: Option<char>) -> &str {
    if quote.is_some() { value } else { value.trim_end_matches([',', ';', ')', ']', '}', '"', '\'', '`', '.', '>']) }
}

/// What a value is, if it is anything: a credential, the place of one that was removed, or a word that may be one.
/// `name` is the text in front of the value, up to and with the `=` or `:`.
fn judge(name: &str, value: &str, quoted: bool) -> Option<PiiKind> {
    let name = name.to_ascii_lowercase();
    let lower = value.to_ascii_lowercase();
    let is_password = name.starts_with("pass") || name.starts_with("pwd");
    // "the password is generated" says nothing, but `password: generated` might be one.
    let hint = name.contains([':', '=']).then_some(PiiKind::Hint);
    let only = |extra: &str| value.chars().all(|c| c.is_alphabetic() || extra.contains(c));
    let constant = value.contains('_') && value.bytes().all(|b| matches!(b, b'A'..=b'Z' | b'0'..=b'9' | b'_'));
    let crossed = value.chars().count() > 2 && value.chars().all(|c| MASKS.contains(&c));
    if crossed {
        Some(PiiKind::Redacted)
    } else if value.chars().count() < 8 {
        None
    } else if is_placeholder(value)
        || ["***", "•••", "xxxx", "redacted", "placeholder"].iter().any(|part| lower.contains(part))
        || ["your-", "your_", "changeme", "change-", "change_"].iter().any(|start| lower.starts_with(start))
    {
        Some(PiiKind::Redacted)
    } else if is_reference(value, quoted) || (!is_password && value.bytes().all(|b| b.is_ascii_digit())) {
        None
    } else if only("") {
        let type_name = !quoted && value.chars().skip(1).any(char::is_uppercase);
        hint.filter(|_| !type_name)
    } else if only("_.:") || (!is_password && (constant || only("-_.:/"))) {
        hint.filter(|_| quoted || only("-"))
    } else {
        Some(PiiKind::Secret)
    }
}

/// `[secret]`, `<your-key>` and `{{password}}`: words in brackets.
fn is_placeholder(value: &str) -> bool {
    let inner = value.trim_start_matches(['[', '<', '{']);
    // The closing bracket may have been taken for the end of the code around the value.
    let end = inner.find([']', '>', '}']).unwrap_or(inner.len());
    let named = end > 0 && inner[..end].chars().all(|c| c.is_alphabetic() || "_-.".contains(c));
    inner.len() < value.len() && named && inner[end..].chars().filter(|c| c.is_alphanumeric()).count() < 4
}

/// Values that name the place where a credential is kept, or that are plain code: variables, templates, calls,
/// types, numbers, paths and links.
fn is_reference(value: &str, quoted: bool) -> bool {
    let starts = |list: &[&str]| list.iter().any(|start| value.starts_with(start));
    let named = |part: &str| {
        part.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_alphanumeric() || "_.:".contains(c))
    };
    let variable = starts(&["${", "$("]) || value.strip_prefix('$').is_some_and(named);
    // "1.2.840.113549" is an object identifier or a version.
    let dotted = value.contains('.') && value.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let path = value.contains("://")
        || starts(&["./", "../", "~/"])
        || value.strip_prefix('/').and_then(|rest| rest.split_once('/')).is_some_and(|(top, _)| {
            // Base64 can start with a slash too, but rarely goes on in small letters up to the next one.
            !top.is_empty() && top.bytes().all(|b| b.is_ascii_lowercase())
        });
    // A quote in front of one of these was a closing quote.
    if quoted {
        return variable || dotted || path || starts(&[")", ",", ";", "]", "}"]);
    }
    let template = starts(&["{", "(", "%(", "#{"]);
    // `f(x)`, `map["x"]`, `s!("x")` and `Type<'_>`. A digit behind the bracket is more likely in a password.
    let call = value.find(['(', '[', '{', '<']).is_some_and(|open| {
        let callee = value[..open].trim_end_matches('!');
        named(callee) && (callee.contains([':', '.']) || !value[open + 1..].starts_with(|c: char| c.is_ascii_digit()))
    });
    let item = value.starts_with(':')
        || (value.contains("::") && named(value))
        || value
            .strip_prefix(['*', '&'])
            .is_some_and(|place| place.chars().all(|c| c.is_alphabetic() || "_.".contains(c)));
    let number = value.strip_prefix('-').unwrap_or(value);
    let suffixed = ["i32", "u32", "i64", "u64"]
        .iter()
        .any(|suffix| number.strip_suffix(suffix).is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit() || b == b'_')));
    let hex =
        number.strip_prefix("0x").is_some_and(|n| n.bytes().all(|b| b.is_ascii_hexdigit() || b"_ui".contains(&b)));
    variable || dotted || path || template || call || item || suffixed || hex
}
