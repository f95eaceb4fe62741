//! Reading around a place in a text: the characters before and after it, and runs of digits.

use std::ops::Range;

/// What stands in the place of characters that were taken out.
pub(crate) const MASKS: [char; 2] = ['*', '•'];

pub(crate) fn byte(text: &str, at: usize) -> Option<u8> {
    text.as_bytes().get(at).copied()
}

pub(crate) fn is_word(byte: Option<u8>) -> bool {
    byte.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_')
}

pub(crate) fn is_digit(byte: Option<u8>) -> bool {
    byte.is_some_and(|b| b.is_ascii_digit())
}

pub(crate) fn before(text: &str, at: usize, back: usize) -> Option<u8> {
    at.checked_sub(back).and_then(|at| byte(text, at))
}

/// No longer word, number, UUID or ticket such as `PAP-1274` reaches into the text that starts
/// here.
pub(crate) fn starts_clean(text: &str, start: usize) -> bool {
    match before(text, start, 1) {
        Some(b'-') => !is_word(before(text, start, 2)),
        Some(b'.') => !is_digit(before(text, start, 2)),
        other => !is_word(other),
    }
}

/// The counterpart of [`starts_clean`] for the end of a candidate.
pub(crate) fn ends_clean(text: &str, end: usize) -> bool {
    match byte(text, end) {
        Some(b'-') => !is_word(byte(text, end + 1)),
        Some(b'.') => !is_digit(byte(text, end + 1)),
        other => !is_word(other),
    }
}

/// The ASCII words on the same line just before `start`, nearest first. Looks back 40 bytes at
/// most.
pub(crate) fn words_before(text: &str, start: usize) -> impl Iterator<Item = &str> {
    behind(text, start, 40)
        .rsplit(|c: char| !c.is_ascii_alphabetic())
        .filter(|word| !word.is_empty())
}

/// Whether `list`, words with single spaces between them, has `word` in any case.
pub(crate) fn is_one_of(word: &str, list: &str) -> bool {
    list.split(' ').any(|known| known.eq_ignore_ascii_case(word))
}

/// Words in front of lists of numbers that can look like a phone or card number.
pub(crate) fn is_number_list(text: &str, start: usize) -> bool {
    const WORDS: &str = "port ports pid pids status codes lines rows columns sizes";
    words_before(text, start).next().is_some_and(|word| is_one_of(word, WORDS))
}

/// Reads groups of digits from `start` with up to three separators between them, and at most `max`
/// digits in all. A group that would exceed `max` is left out as a whole.
pub(crate) fn digit_groups(text: &str, start: usize, max: usize) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let (mut groups, mut total, mut at) = (Vec::new(), 0, start);
    loop {
        let len =
            bytes.iter().skip(at).take(max + 1 - total).take_while(|b| b.is_ascii_digit()).count();
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

pub(crate) fn digits(text: &str, groups: &[Range<usize>]) -> Vec<u8> {
    groups
        .iter()
        .flat_map(|group| text.as_bytes()[group.clone()].iter().map(|b| b - b'0'))
        .collect()
}

/// A compact date such as `20240115`, also with a time behind it. Takes the values of the digits.
pub(crate) fn is_compact_date(digits: &[u8]) -> bool {
    match *digits {
        [1, 9, _, _, m, n, d, e, ref time @ ..] | [2, 0, _, _, m, n, d, e, ref time @ ..] => {
            matches!(time.len(), 0 | 6)
                && (1..=12).contains(&(m * 10 + n))
                && (1..=31).contains(&(d * 10 + e))
        }
        _ => false,
    }
}

/// The rest of the line behind `start`: at most `max` bytes of it.
pub(crate) fn ahead(text: &str, start: usize, max: usize) -> &str {
    let most = start.saturating_add(max).min(text.len());
    let end = (start..=most).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(start);
    text.get(start..end).and_then(|window| window.split('\n').next()).unwrap_or_default()
}

/// What is on the same line in front of `end`: at most `max` bytes of it.
pub(crate) fn behind(text: &str, end: usize, max: usize) -> &str {
    let start =
        (end.saturating_sub(max)..=end).find(|&start| text.is_char_boundary(start)).unwrap_or(end);
    text.get(start..end).and_then(|window| window.rsplit('\n').next()).unwrap_or_default()
}

/// Whether the number at `start` follows a word that names a thing rather than a person: an order,
/// a build, a book.
pub(crate) fn numbers_a_thing(text: &str, start: usize) -> bool {
    const WORDS: &str = "order orders isbn sku invoice ticket tickets bug issue pr part serial \
                         build run hash offset \
        commit epoch timestamp tracking row rows id ids bestellung bestellnummer rechnung artikel \
        artikelnummer \
        sendung sendungsnummer auftrag seriennummer commande facture colis lot version release \
        model item product";
    const CJK: &str = "订单 单号 编号 编码 时间戳 工单 注文 型番 伝票 品番 追跡 代码";
    let near = behind(text, start, 24);
    words_before(text, start).take(2).any(|word| is_one_of(word, WORDS))
        || CJK.split(' ').any(|word| near.contains(word))
}

/// Whether a run of digits goes on at either side of `at` behind a single space, as in a row of a
/// table.
pub(crate) fn is_in_table(text: &str, at: &Range<usize>) -> bool {
    (before(text, at.start, 1) == Some(b' ') && is_digit(before(text, at.start, 2)))
        || (byte(text, at.end) == Some(b' ') && is_digit(byte(text, at.end + 1)))
}
