//! Phone numbers as they are dialled inside of a country, without a word in front.

use std::ops::Range;

use super::check::Check;
use super::text::{
    before, digit_groups, digits, ends_clean, is_digit, is_in_table, is_number_list,
    numbers_a_thing, starts_clean,
};
use super::{Finding, PiiKind};

pub(super) const SPECS: &[(&str, Check)] = &[
    (r"\(?0[1-9]", phone_trunk),
    (r"(?:86[ -]?)?1[3-9][0-9](?:[0-9]{8}|[ -][0-9]{4}[ -][0-9]{4})", phone_chinese),
];

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
