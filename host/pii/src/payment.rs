//! Payment cards, bank accounts, and the American social security number.

use std::ops::Range;

use iban::Iban;

use crate::finding::{Check, Finding, PiiKind};
use crate::text::{
    before, byte, digit_groups, digits, ends_clean, is_number_list, is_word, starts_clean,
};

pub(crate) const SPECS: &[(&str, Check)] = &[
    (r"[0-9]{4,}", card),
    (r"(?-u:\b)[0-9]{3}-[0-9]{2}-[0-9]{4}(?-u:\b)", ssn),
    (r"(?i)(?-u:\b)[a-z]{2}[0-9]{2}", iban),
    (
        r"(?i)@(?:ok(?:hdfcbank|icici|sbi|axis)|ybl|ibl|axl|paytm|upi|apl|yapl|barodampay)(?-u:\b)",
        payment_address,
    ),
];

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
        (valid && clean && !is_number_list(text, range.start))
            .then(|| Finding::high(PiiKind::Card, range))
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
        (_, 62 | 65, ..) | (_, _, 644..=649, _) | (_, _, _, 6011 | 3528..=3589) => {
            (16..=19).contains(&len)
        }
        (_, 50 | 56..=58, ..) | (_, _, 676, _) | (_, _, _, 6304 | 6759) => (13..=19).contains(&len),
        _ => false,
    };
    issued && luhn(digits)
}

fn luhn(digits: &[u8]) -> bool {
    let double = |d: u8| if d > 4 { 2 * d - 9 } else { 2 * d };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(i, &d)| u32::from(if i % 2 == 1 { double(d) } else { d }))
        .sum();
    sum.is_multiple_of(10)
}

fn ssn(text: &str, at: Range<usize>) -> Option<Finding> {
    let number = &text[at.clone()];
    let assigned =
        !number.starts_with("000") && !number.starts_with("666") && !number.starts_with('9');
    let complete = &number[4..6] != "00" && &number[7..] != "0000";
    let clean = starts_clean(text, at.start) && ends_clean(text, at.end);
    (assigned && complete && clean).then(|| Finding::high(PiiKind::Ssn, at))
}

/// An address of the Indian payment interface, such as `name@upi`: a bank's handle in the place of
/// a domain.
fn payment_address(text: &str, at: Range<usize>) -> Option<Finding> {
    let local = text[..at.start]
        .rsplit(|c: char| !c.is_ascii_alphanumeric() && !".-_".contains(c))
        .next()?;
    let ends = !matches!(byte(text, at.end), Some(b'.' | b'/')) || !is_word(byte(text, at.end + 1));
    (local.len() > 2 && ends)
        .then(|| Finding::high(PiiKind::BankAccount, at.start - local.len()..at.end))
}

/// The longest account number of the registry: two letters and 32 more characters, with a separator
/// between them.
const MAX_IBAN: usize = 34;

fn iban(text: &str, at: Range<usize>) -> Option<Finding> {
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
