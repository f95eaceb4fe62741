//! What belongs to a person: addresses, numbers, papers.

use std::net::Ipv4Addr;
use std::ops::Range;

use iban::Iban;

use super::text::{
    before, byte, digit_groups, digits, ends_clean, is_compact_date, is_digit, is_number_list,
    is_one_of, is_word, starts_clean,
};
use super::{Finding, PiiKind};

pub(super) const MASKS: [char; 2] = ['*', '•'];

pub(super) fn is_mail_char(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || ('\u{C0}'..='\u{52F}').contains(&c)
        || ".-".contains(c)
        || MASKS.contains(&c)
}

pub(super) fn email(text: &str, at: Range<usize>) -> Option<Finding> {
    // Neither side can cross another `@`, so no character is read more than twice.
    let is_local = |c: char| is_mail_char(c) || "_%+'~".contains(c);
    let local = text[..at.start].rsplit(|c| !is_local(c)).next()?;
    let domain = text[at.end..].split(|c| !is_mail_char(c)).next()?;
    let plain = local.trim_start_matches(['*', '•', '.', '-', '\'']);
    let range = |local: &str, domain: &str| at.start - local.len()..at.end + domain.len();

    // Stars in front of a longer name, or on both sides of an address, are Markdown emphasis.
    let emphasis = plain.chars().count() > 2 || domain.ends_with('*');
    let masked =
        plain.contains(MASKS) || (local.contains(MASKS) && (plain.is_empty() || !emphasis));
    let crossed = plain.len() > 2 && plain.chars().all(|c| matches!(c, 'x' | 'X'));
    let masked_domain = domain.rsplit_once(MASKS).is_some_and(|(_, rest)| rest.contains('.'));
    match valid_domain(domain) {
        Some(domain) if masked || crossed => {
            Some(Finding::possible(PiiKind::Redacted, range(local, domain)))
        }
        // `git` is an account that everybody uses for remotes.
        Some(domain) if plain.contains(char::is_alphanumeric) && plain != "git" => {
            Some(Finding::high(PiiKind::Email, range(plain, domain)))
        }
        None if masked_domain && !local.is_empty() => {
            Some(Finding::possible(PiiKind::Redacted, range(local, domain)))
        }
        _ => None,
    }
}

/// An address of the Indian payment interface, such as `name@upi`: a bank's handle in the place of
/// a domain.
pub(super) fn payment_address(text: &str, at: Range<usize>) -> Option<Finding> {
    let local = text[..at.start]
        .rsplit(|c: char| !c.is_ascii_alphanumeric() && !".-_".contains(c))
        .next()?;
    let ends = !matches!(byte(text, at.end), Some(b'.' | b'/')) || !is_word(byte(text, at.end + 1));
    (local.len() > 2 && ends)
        .then(|| Finding::high(PiiKind::BankAccount, at.start - local.len()..at.end))
}

/// The longest start of `domain` that can be a mail domain. Without a list of all top-level domains
/// this accepts any two or more letters, apart from endings that are common in code and are no
/// top-level domains.
pub(super) fn valid_domain(domain: &str) -> Option<&str> {
    const NOT_TOP: &str = "png jpg jpeg gif webp svg css js ts jsx tsx json html txt log lock yaml \
                           yml toml class service \
        socket timer slice scope";
    let domain = domain.split(MASKS).next()?.split("..").next()?;
    let starts_with_digit = |label: &str| label.starts_with(|c: char| c.is_ascii_digit());
    let mut labels = domain.split('.');
    let (first, second) = (labels.next()?, labels.next()?);
    // `name@1.2.3-beta.rc` is a package version.
    if first.is_empty() || (first.bytes().all(|b| b.is_ascii_digit()) && starts_with_digit(second))
    {
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

pub(super) fn card(text: &str, at: Range<usize>) -> Option<Finding> {
    let groups = digit_groups(text, at.start, 19);
    let single = |pair: &[Range<usize>]| matches!(&text[pair[0].end..pair[1].start], " " | "-");
    let joined = 1 + groups.windows(2).take_while(|pair| single(pair) && pair[0].len() > 2).count();
    (1..=joined.min(groups.len())).rev().find_map(|count| {
        let range = at.start..groups[count - 1].end;
        // No issuer prints groups of one or two digits, but tables of numbers have them.
        let printed = count == 1 || groups[count - 1].len() > 2;
        let valid = printed && is_card(&digits(text, &groups[..count]));
        let clean = starts_clean(text, range.start) && ends_clean(text, range.end);
        (valid && clean && !is_number_list(text, range.start))
            .then(|| Finding::high(PiiKind::Card, range))
    })
}

pub(super) fn is_card(digits: &[u8]) -> bool {
    let prefix = |len: usize| digits.iter().take(len).fold(0_u32, |n, &d| n * 10 + u32::from(d));
    let len = digits.len();
    let issued = match (prefix(1), prefix(2), prefix(3), prefix(4)) {
        (4, ..) => matches!(len, 13 | 16 | 19),
        (_, 34 | 37, ..) => len == 15,
        (_, 51..=55, ..) | (_, _, _, 2221..=2720 | 2200..=2204) => len == 16,
        (_, 36 | 38 | 39, ..) | (_, _, 300..=305, _) | (_, _, _, 3095) => (14..=19).contains(&len),
        (_, 62 | 65, ..) | (_, _, 644..=649, _) | (_, _, _, 6011 | 3528..=3589) => {
            (16..=19).contains(&len)
        }
        (_, 50 | 56..=58, ..) | (_, _, 676, _) | (_, _, _, 6304 | 6759) => (13..=19).contains(&len),
        _ => false,
    };
    issued && luhn(digits)
}

pub(super) fn luhn(digits: &[u8]) -> bool {
    let double = |d: u8| if d > 4 { 2 * d - 9 } else { 2 * d };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(i, &d)| u32::from(if i % 2 == 1 { double(d) } else { d }))
        .sum();
    sum.is_multiple_of(10)
}

pub(super) fn ssn(text: &str, at: Range<usize>) -> Option<Finding> {
    let number = &text[at.clone()];
    let assigned =
        !number.starts_with("000") && !number.starts_with("666") && !number.starts_with('9');
    let complete = &number[4..6] != "00" && &number[7..] != "0000";
    let clean = starts_clean(text, at.start) && ends_clean(text, at.end);
    (assigned && complete && clean).then(|| Finding::high(PiiKind::Ssn, at))
}

// Phones

pub(super) fn phone_international(text: &str, at: Range<usize>) -> Option<Finding> {
    let plus = text[at.clone()].starts_with('+');
    let first = at.end - 1;
    let range = dial(text, first, 8)?;
    let number = &text[range.clone()];
    let values: Vec<u8> = number.bytes().filter(u8::is_ascii_digit).map(|b| b - b'0').collect();
    let separators: Vec<u8> = number.bytes().filter(|b| !b.is_ascii_digit()).collect();
    let plausible = if plus {
        // A `+` in front of a date or a number is common in diffs and in code. 999 is no country
        // code.
        let arithmetic =
            matches!(before(text, at.start, 1), Some(b'+' | b')')) || separators == b".";
        let bare = separators.is_empty() && (values.len() < 9 || is_compact_date(&values));
        !arithmetic && !bare && !values.starts_with(&[9, 9, 9])
    } else {
        // Without this, lists such as `0031 0032 0033` would be phone numbers.
        number.find([' ', '-']).is_some_and(|gap| gap < 4 && !number[gap + 1..].starts_with('0'))
    };
    // Numbers that lost the space between them still are two numbers. Sums have no spaces inside of
    // a term.
    let glued = plus && !separators.is_empty() && is_digit(before(text, at.start, 1));
    let clean = glued || starts_clean(text, at.start);
    (plausible && clean).then(|| Finding::high(PiiKind::Phone, at.start..range.end))
}

pub(super) fn phone_north_american(text: &str, at: Range<usize>) -> Option<Finding> {
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
    (clean && !in_table && !is_number_list(text, at.start))
        .then(|| Finding::high(PiiKind::Phone, at))
}

pub(super) fn phone_announced(text: &str, at: Range<usize>) -> Option<Finding> {
    let words = text[at.clone()].to_ascii_lowercase();
    let announced = words.contains([':', '=', '#'])
        || [" is", "num", "no", "nr"].iter().any(|word| words.contains(word));
    let lead = text[at.end..].find(|c| c != '+' && c != '(').filter(|&lead| lead < 3)?;
    let range = dial(text, at.end + lead, if announced { 7 } else { 9 })?;
    Some(Finding::high(PiiKind::Phone, at.end..range.end))
}

/// The longest run of digit groups from `start` with `min` to 15 digits that can be dialled. Dates
/// and IPv4 addresses are no numbers to dial.
pub(super) fn dial(text: &str, start: usize, min: usize) -> Option<Range<usize>> {
    let groups = digit_groups(text, start, 15);
    let lens: Vec<usize> = groups.iter().map(ExactSizeIterator::len).collect();
    let separator = byte(text, groups.first()?.end);
    let date = matches!(lens[..], [4, 2, 2, ..] | [2, 2, 4, ..])
        && matches!(separator, Some(b'-' | b'.' | b'/'));
    let address =
        groups.get(3).is_some_and(|last| text[start..last.end].parse::<Ipv4Addr>().is_ok());
    if date || address {
        return None;
    }
    let country_one = byte(text, start) == Some(b'1')
        && matches!(before(text, start, 1), Some(b'+' | b'0' | b'('));
    (1..=groups.len()).rev().find_map(|count| {
        let total: usize = lens[..count].iter().sum();
        let end = groups[count - 1].end;
        let fits = if country_one { total == 11 } else { total >= min };
        let time =
            lens[count - 1] == 2 && byte(text, end) == Some(b':') && is_digit(byte(text, end + 1));
        (fits && !time && ends_clean(text, end)).then_some(start..end)
    })
}

// Bank accounts

/// The longest account number of the registry: two letters and 32 more characters, with a separator
/// between them.
const MAX_IBAN: usize = 34;

pub(super) fn iban(text: &str, at: Range<usize>) -> Option<Finding> {
    let mut account = String::with_capacity(MAX_IBAN);
    let (mut end, mut found) = (at.start, None);
    // The registry gives each country one length, so at most one end fits.
    while account.len() < MAX_IBAN && found.is_none() {
        match byte(text, end) {
            Some(b) if b.is_ascii_alphanumeric() => {
                account.push(char::from(b.to_ascii_uppercase()));
            }
            Some(b' ' | b'-') if is_word(before(text, end, 1)) => {}
            _ => break,
        }
        end += 1;
        if account.len() > 14 && ends_clean(text, end) && account.parse::<Iban>().is_ok() {
            found = Some(Finding::high(PiiKind::Iban, at.start..end));
        }
    }
    found
}
