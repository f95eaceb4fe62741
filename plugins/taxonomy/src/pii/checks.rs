//! What a pattern alone cannot say of a match: checksums, ranges, and what only looks like it.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use iban::Iban;

#[allow(clippy::unnecessary_wraps, reason = "it is a `Check`")]
pub(super) fn always(found: &str) -> Option<Range<usize>> {
    Some(0..found.len())
}

/// RFC 5321 by its shape. `git` is everybody's account for remotes; file names and package versions are no addresses.
pub(super) fn email(found: &str) -> Option<Range<usize>> {
    const NOT_TOP: [&str; 12] =
        ["png", "jpg", "jpeg", "gif", "webp", "svg", "css", "js", "ts", "json", "html", "service"];
    let found = found.trim_end_matches(['-', '.']);
    let (local, domain) = found.split_once('@')?;
    let top = domain.rsplit('.').next()?;
    let is_name = top.chars().count() > 1 && top.chars().all(char::is_alphabetic);
    (is_name && local != "git" && !NOT_TOP.contains(&top.to_lowercase().as_str())).then_some(0..found.len())
}

fn digits(text: &str) -> Vec<u32> {
    text.chars().filter_map(|c| c.to_digit(10)).collect()
}

/// Where a part of a match can end, the longest part first: behind a letter or digit that no other follows. Whatever
/// else was written behind a number may look like more of it.
fn ends(found: &str) -> impl Iterator<Item = usize> {
    let is_sign = |at: usize| found[at..].chars().next().is_some_and(char::is_alphanumeric);
    let ends = found.char_indices().filter(|(_, c)| c.is_alphanumeric()).map(|(at, c)| at + c.len_utf8());
    let ends: Vec<usize> = ends.filter(|end| !is_sign(*end)).collect();
    ends.into_iter().rev()
}

/// ISO/IEC 7812-1: an issuer's first digit, 13 to 19 digits, and a valid Luhn digit.
pub(super) fn card(found: &str) -> Option<Range<usize>> {
    let double = |digit: u32| if digit > 4 { 2 * digit - 9 } else { 2 * digit };
    let is_card = |end: &usize| {
        let digits = digits(&found[..*end]);
        let sum: u32 = digits.iter().rev().enumerate().map(|(n, d)| if n % 2 == 1 { double(*d) } else { *d }).sum();
        (13..=19).contains(&digits.len()) && matches!(digits.first(), Some(2..=6)) && sum.is_multiple_of(10)
    };
    ends(found).find(is_card).map(|end| 0..end)
}

/// The ranges that the SSA never assigned are no numbers of persons.
pub(super) fn ssn(found: &str) -> Option<Range<usize>> {
    let assigned = !found.starts_with("000") && !found.starts_with("666") && !found.starts_with('9');
    (assigned && &found[4..6] != "00" && &found[7..] != "0000").then_some(0..found.len())
}

/// ISO 13616, by the registry of its countries: hashes have a valid check number often enough.
pub(super) fn iban(found: &str) -> Option<Range<usize>> {
    let is_iban = |end: &usize| {
        let plain: String = found[..*end].chars().filter(|c| *c != ' ').collect();
        plain.to_ascii_uppercase().parse::<Iban>().is_ok()
    };
    ends(found).find(is_iban).map(|end| 0..end)
}

/// ITU-T E.164: 8 to 15 digits, and a trunk zero or two.
pub(super) fn phone(found: &str) -> Option<Range<usize>> {
    let is_phone = |end: &usize| {
        let found = &found[..*end];
        (8..=17).contains(&digits(found).len()) && (found.starts_with('+') || found.contains([' ', '-', '/']))
    };
    ends(found).find(is_phone).map(|end| 0..end)
}

/// The number behind the word that announces it.
pub(super) fn announced_number(found: &str) -> Option<Range<usize>> {
    let at = found.find(|c: char| c.is_ascii_digit())?;
    // A day, as `call me on 2026-03-01` has it.
    if let [b'2', b'0', _, _, b'-', _, _, b'-', ..] = &found.as_bytes()[at..] {
        return None;
    }
    // Letters right in front belong to it, as in a passport's number.
    let letters = found[..at].bytes().rev().take_while(u8::is_ascii_uppercase).count().min(2);
    Some(at - letters..found.len())
}

/// The value behind its name. What is only letters is most likely a word: `the token is expired`.
pub(super) fn secret_value(found: &str) -> Option<Range<usize>> {
    let value = found.rsplit([' ', '=', ':', '"', '\'', '`']).next()?;
    let value = value.trim_end_matches(['.', '!', '?']);
    let start = found.rfind(value)?;
    let telling = value.chars().any(|c| c.is_ascii_digit()) && value.chars().count() >= 4;
    (telling && !value.starts_with("http")).then_some(start..start + value.len())
}

/// Public addresses only: the special ranges (RFC 6890) name no person.
pub(super) fn ip_v4(found: &str) -> Option<Range<usize>> {
    let address: Ipv4Addr = found.parse().ok()?;
    let [first, second, ..] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_unspecified()
        || address.is_multicast()
        || (first == 100 && (64..128).contains(&second))
        // No provider hands these out; version numbers look so.
        || first < 10;
    (!special && first < 240).then_some(0..found.len())
}

/// A whole address that is neither local nor for documentation.
pub(super) fn ip_v6(found: &str) -> Option<Range<usize>> {
    let address: Ipv6Addr = found.parse().ok()?;
    let first = address.segments()[0];
    let global = (0x2000..0x4000).contains(&first) && !(first == 0x2001 && address.segments()[1] == 0xdb8);
    global.then_some(0..found.len())
}
