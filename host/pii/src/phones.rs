//! Phone numbers: international, as they are dialled inside of a country, and behind a word.

use std::net::Ipv4Addr;
use std::ops::Range;

use crate::finding::{Check, Finding, PiiKind};
use crate::text::{
    before, byte, digit_groups, digits, ends_clean, is_compact_date, is_digit, is_in_table,
    is_number_list, numbers_a_thing, starts_clean,
};

pub(crate) const SPECS: &[(&str, Check)] = &[
    (r"(?:\+|(?-u:\b)00)\(?[1-9]", phone_international),
    (
        r"(?:1[-. ]?)?(?:\([2-9][0-9]{2}\)[-. ]{0,2}|[2-9][0-9]{2}[-./ ])[2-9][0-9]{2}[-. ][0-9]{4}",
        phone_north_american,
    ),
    (
        concat!(
            r"(?i)(?:(?-u:\b)(?:(?:handy|mobil|telefon)nummer|(?:cell|mobile|tele)? ?phone|cell|mobile|whatsapp|fax|telefon|t[eé]l[eé](?:phone|fono)|t[eé]l",
            r"|landline|voicemail|wechat|sms|handy|natel|rufnummer|mobil|portable|cellulare)",
            r"|电话|電話|手机|手機|携帯|座机|微信|热线|फ़ोन|फोन|मोबाइल|(?-u:\b)(?:call|text|reach|ring) (?:me|us|her|him|them) (?:at|on))",
            r#"(?:[ _-]?(?:number|num|no|nr|#)|号码?|番号| नंबर)?\.?(?: is)?[ :="']{0,4}"#,
        ),
        phone_announced,
    ),
    (r"\(?0[1-9]", phone_trunk),
    (r"(?:86[ -]?)?1[3-9][0-9](?:[0-9]{8}|[ -][0-9]{4}[ -][0-9]{4})", phone_chinese),
];

fn phone_international(text: &str, at: Range<usize>) -> Option<Finding> {
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
    (clean && !in_table && !is_number_list(text, at.start))
        .then(|| Finding::high(PiiKind::Phone, at))
}

fn phone_announced(text: &str, at: Range<usize>) -> Option<Finding> {
    let words = text[at.clone()].to_ascii_lowercase();
    let announced = words.contains([':', '=', '#'])
        || [" is", "num", "no", "nr"].iter().any(|word| words.contains(word));
    let lead = text[at.end..].find(|c| c != '+' && c != '(').filter(|&lead| lead < 3)?;
    let range = dial(text, at.end + lead, if announced { 7 } else { 9 })?;
    Some(Finding::high(PiiKind::Phone, at.end..range.end))
}

/// The longest run of digit groups from `start` with `min` to 15 digits that can be dialled. Dates
/// and IPv4 addresses are no numbers to dial.
fn dial(text: &str, start: usize, min: usize) -> Option<Range<usize>> {
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

/// A national phone number with its trunk zero: `0171 2894417`, `06 42 18 77 35`, `(0341) 22 87
/// 16`, `090-1234-5678`.
fn phone_trunk(text: &str, at: Range<usize>) -> Option<Finding> {
    let first = at.end - 2;
    let groups = digit_groups(text, first, 12);
    let separated =
        |groups: &[Range<usize>]| groups.windows(2).all(|pair| pair[1].start - pair[0].end <= 2);
    let count = (1..=groups.len()).rev().find(|&count| {
        let total = digits(text, &groups[..count]).len();
        (9..=12).contains(&total)
            && separated(&groups[..count])
            && ends_clean(text, groups[count - 1].end)
    })?;
    let lens: Vec<usize> = groups[..count].iter().map(ExactSizeIterator::len).collect();
    let range = at.start..groups[count - 1].end;
    let number = &text[range.clone()];
    let date = matches!(lens[..], [2, 2, 4, ..] | [2, 2, 2, 2]) || number.matches('/').count() > 1;
    // Without separators only the prefixes of mobile networks are sure enough.
    let values = digits(text, &groups[..count]);
    let mobile = match values[1] {
        1 => matches!(values[2], 5..=7) && values.len() >= 11,
        6 => values.len() == 10,
        7..=9 => {
            values.len() == 11 && (values[2] == 0 || values[1] == 7)
                || (values[1] == 7 && values.len() == 10)
        }
        _ => false,
    };
    let plausible = !date && (count > 1 || mobile) && lens[0] <= 11 && (count == 1 || lens[0] <= 5);
    // `0,0341` is a fraction.
    let fraction = before(text, at.start, 1) == Some(b',') && is_digit(before(text, at.start, 2));
    let clean = !fraction && (number.starts_with('(') || starts_clean(text, at.start));
    let counted = numbers_a_thing(text, at.start)
        || is_number_list(text, at.start)
        || is_in_table(text, &range);
    (plausible && clean && !counted).then(|| Finding::high(PiiKind::Phone, range))
}

/// A mobile number of mainland China, also with its country code.
fn phone_chinese(text: &str, at: Range<usize>) -> Option<Finding> {
    let clean = starts_clean(text, at.start) && ends_clean(text, at.end);
    let counted =
        numbers_a_thing(text, at.start) || is_number_list(text, at.start) || is_in_table(text, &at);
    (clean && !counted).then(|| Finding::high(PiiKind::Phone, at))
}
