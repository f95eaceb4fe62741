//! Numbers that states give to people, found by their check digits or their shape, without a word
//! in front.
//!
//! Sources: the Swiss AHV number is an EAN-13 with prefix 756; the French NIR has a key modulo 97;
//! the Chinese resident identity number is GB 11643-1999 (ISO 7064, MOD 11-2); Aadhaar ends with a
//! Verhoeff digit; the German tax number is ISO 7064, MOD 11,10; the Indian PAN and the British
//! national insurance number have fixed letters.

use std::ops::Range;

use crate::finding::{Check, Finding, PiiKind};
use crate::text::{ends_clean, is_in_table, is_number_list, starts_clean};

pub(crate) const SPECS: &[(&str, Check)] = &[
    (r"756\.?[0-9]{4}\.?[0-9]{4}\.?[0-9]{2}", ahv),
    (r"[12] ?[0-9]{2} ?(?:[0-9]{2}) ?[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}", nir),
    (r"[1-8][0-9]{5}(?:19|20)[0-9]{9}[0-9Xx]", resident),
    (r"[2-9][0-9]{3}([ -])[0-9]{4}[ -][0-9]{4}", aadhaar),
    (r"[1-9][0-9] [0-9]{3} [0-9]{3} [0-9]{3}", tax_german),
    (r"[A-Z]{3}P[A-Z][0-9]{4}[A-Z]", shape),
    (r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z](?: ?[0-9]{2}){3} ?[A-D]", insurance_british),
    (r"9[0-9]{2}-(?:5[0-9]|6[0-5]|7[0-9]|8[0-8]|9[0-24-9])-[0-9]{4}", shape),
];

fn found(text: &str, at: Range<usize>, valid: bool) -> Option<Finding> {
    let clean = starts_clean(text, at.start) && ends_clean(text, at.end);
    (valid && clean).then(|| Finding::high(PiiKind::NationalId, at))
}

fn values(text: &str, at: &Range<usize>) -> Vec<u8> {
    text[at.clone()].bytes().filter(u8::is_ascii_digit).map(|b| b - b'0').collect()
}

/// The sum of the digits, each times its weight. The weights repeat.
fn weighted(digits: &[u8], weights: &[u32]) -> u32 {
    digits
        .iter()
        .zip(weights.iter().cycle())
        .map(|(&digit, weight)| u32::from(digit) * weight)
        .sum()
}

fn shape(text: &str, at: Range<usize>) -> Option<Finding> {
    found(text, at, true)
}

fn ahv(text: &str, at: Range<usize>) -> Option<Finding> {
    let valid = weighted(&values(text, &at), &[1, 3]).is_multiple_of(10);
    found(text, at, valid)
}

fn nir(text: &str, at: Range<usize>) -> Option<Finding> {
    let all = values(text, &at);
    let number = |digits: &[u8]| digits.iter().fold(0_u64, |n, &digit| n * 10 + u64::from(digit));
    let (body, key) = all.split_at_checked(13)?;
    let month = number(&body[3..5]);
    // Months above 12 stand for births whose month is not known.
    let valid = (1..=12).contains(&month) || (20..=42).contains(&month) || month >= 50;
    let valid = valid && 97 - number(body) % 97 == number(key);
    found(text, at, valid)
}

fn resident(text: &str, at: Range<usize>) -> Option<Finding> {
    const WEIGHTS: [u32; 17] = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    let number = &text.as_bytes()[at.clone()];
    let body: Vec<u8> = number[..17].iter().map(|b| b - b'0').collect();
    let (month, day) = (body[10] * 10 + body[11], body[12] * 10 + body[13]);
    let check = b"10X98765432".get(weighted(&body, &WEIGHTS) as usize % 11);
    let valid = check == Some(&number[17].to_ascii_uppercase());
    found(text, at, valid && (1..=12).contains(&month) && (1..=31).contains(&day))
}

fn aadhaar(text: &str, at: Range<usize>) -> Option<Finding> {
    let valid =
        verhoeff(&values(text, &at)) && !is_in_table(text, &at) && !is_number_list(text, at.start);
    found(text, at, valid)
}

/// The check of Verhoeff, by the dihedral group of order ten.
fn verhoeff(digits: &[u8]) -> bool {
    const ORDER: [u8; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
    let product = |a: u8, b: u8| match (a < 5, b < 5) {
        (true, true) => (a + b) % 5,
        (true, false) => 5 + (a + b - 5) % 5,
        (false, true) => 5 + (a - 5 + 5 - b) % 5,
        (false, false) => (a + 5 - b) % 5,
    };
    let permuted =
        |digit: u8, times: usize| (0..times % 8).fold(digit, |digit, _| ORDER[usize::from(digit)]);
    digits
        .iter()
        .rev()
        .enumerate()
        .fold(0, |sum, (place, &digit)| product(sum, permuted(digit, place)))
        == 0
}

fn tax_german(text: &str, at: Range<usize>) -> Option<Finding> {
    let all = values(text, &at);
    let (body, check) = all.split_at(10);
    let product = body.iter().fold(10, |product, &digit| {
        let sum = (digit + product) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    // One or two digits occur more than once; all others at most once.
    let repeated =
        (0..10).filter(|digit| body.iter().filter(|one| *one == digit).count() > 1).count();
    let valid = (11 - product) % 10 == check[0] && repeated == 1;
    let valid = valid && !is_in_table(text, &at);
    found(text, at, valid)
}

fn insurance_british(text: &str, at: Range<usize>) -> Option<Finding> {
    let prefix = &text[at.start..at.start + 2];
    let valid = !["BG", "GB", "NK", "KN", "TN", "NT", "ZZ"].contains(&prefix);
    found(text, at, valid)
}
