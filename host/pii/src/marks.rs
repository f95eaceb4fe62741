//! Data that was taken out or masked before: placeholders of any tool, stars in the place of
//! digits.

use std::ops::Range;

use crate::finding::{Check, Finding, PiiKind};
use crate::text::{before, is_one_of, is_word};

pub(crate) const SPECS: &[(&str, Check)] = &[
    (
        r"[\[<{(【〈《]{1,2}[0-9A-Za-zÀ-ɏ\u{900}-\u{9FFF} _:./#-]{1,48}[\]>})】〉》]{1,2}",
        placeholder,
    ),
    (r"(?i)[x*•#]{3}[- ][x*•#]{2}[- ][0-9]{4}(?-u:\b)", masked),
    (r"(?i)\(?[x*•]{3}\)?[-. ]{1,2}[x*•]{3}[-. ][0-9]{4}(?-u:\b)", masked),
    (
        r"(?i)(?:[x*•]{4}[- ]){2,4}[0-9]{3,4}(?-u:\b)|[*•]{3,}-?[0-9]{3,4}(?-u:\b)|[•●]{3,} ?[0-9]{2,4}(?-u:\b)",
        masked,
    ),
    // Stars between digits or capitals, and groups of stars.
    (r"[0-9A-Z]{2,}[-.]?[*•●]{3,8}[-.]?[0-9A-Z]", masked),
    (r"(?:[*•●]{2,8}[ .-]){2,6}[*•●]{2,8}", masked),
];

#[allow(clippy::unnecessary_wraps, reason = "it is a `Check`")]
fn masked(_: &str, at: Range<usize>) -> Option<Finding> {
    Some(Finding::possible(PiiKind::Redacted, at))
}

/// Words that say that something was taken out, whatever it was.
const TAKEN: &str = "redacted masked anonymized anonymised pseudonymized withheld scrubbed \
                     geschwärzt \
    anonymisiert maskiert caviardé caviardée masqué masquée anonymisé anonymisée expurgé oscurato";

/// Words that say it only together with the name of personal data.
const MARKS: &str =
    "removed hidden deleted filtered supprimé supprimée entfernt gelöscht verborgen omitted pii";

/// Personal data by its usual names.
const NAMES: &str = "email emails mail phone telephone mobile cell fax card creditcard iban ssn \
                     passport dob \
    birth birthdate birthday secret password token person name nom prénom vorname nachname \
    anschrift adresse \
    address location telefon telefonnummer handy téléphone courriel bic nhs aadhaar pii ip licence \
    license \
    geburtsdatum apikey account national";

/// Names that are ordinary words of code in small letters: `<name>`, `[cell]`.
const WEAK: &str =
    "name nom address adresse ip location person account mail cell licence license birth national";

/// Words around a name that do not make it something else.
const AROUND: &str = "e us uk number no nr id user customer client full first last home work \
                      personal private \
    your my date of api key code line city state country driver drivers bank credit social \
    security and type \
    value";

/// Words in brackets, unless they are code: `row[phone]`, `&[Token]`, `Vec::<Email>`, `cargo new
/// <name>`.
fn placeholder(text: &str, at: Range<usize>) -> Option<Finding> {
    let found = &text[at.clone()];
    let brackets = |c: char| !c.is_alphanumeric() && !"_ :./-".contains(c);
    let inner = found.trim_matches(brackets).trim();
    let code = match before(text, at.start, 1) {
        Some(b':') => before(text, at.start, 2) == Some(b':'),
        other => matches!(other, Some(b'&' | b'$' | b'#' | b'!')) || is_word(other),
    };
    // `<Email>` is a type and `{email}` a variable.
    let mixed = inner.chars().any(char::is_lowercase);
    let camel = found.starts_with('<') && inner.starts_with(char::is_uppercase) && mixed;
    let words: Vec<&str> =
        inner.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).collect();
    let any = |list: &str| words.iter().any(|word| is_listed(word, list));
    let all_known = words
        .iter()
        .all(|word| [NAMES, AROUND, MARKS, TAKEN].iter().any(|list| is_listed(word, list)));
    let api_key =
        words.windows(2).any(|pair| is_one_of(pair[0], "api") && is_one_of(pair[1], "key"));
    let ordinary = mixed
        && words.iter().all(|word| is_listed(word, WEAK) || is_listed(word, AROUND))
        && !api_key;
    // A bracket that code and prose have, too, needs the word that says what happened.
    let common =
        found.starts_with('(') || (found.starts_with('{') && (!found.starts_with("{{") || mixed));
    let named =
        (any(NAMES) || api_key) && all_known && !ordinary && (!common || any(MARKS) || any(TAKEN));
    // `nc <IP> <PORT>` shows how to call a command.
    let argument = found.starts_with('<') && is_one_of(inner, "ip");
    let says_taken = |word: Option<&&str>| word.is_some_and(|word| is_listed(word, TAKEN));
    let variable = inner.contains('_') && mixed && !any(NAMES);
    let taken = says_taken(words.first()) || (says_taken(words.last()) && all_known);
    let known = (taken && !variable)
        || (named && !argument)
        || names_in_cjk(inner)
        || template_name(found, inner);
    (known && !code && !camel).then(|| Finding::possible(PiiKind::Redacted, at))
}

/// Equal to a word of the list, in any case, also of letters that are not ASCII.
fn is_listed(word: &str, list: &str) -> bool {
    if word.is_ascii() { is_one_of(word, list) } else { is_one_of(&word.to_lowercase(), list) }
}

/// `[姓名]`, `<電話番号>`: the name of personal data and little else.
fn names_in_cjk(inner: &str) -> bool {
    const WORDS: &str = "姓名 地址 电话 手机 邮箱 身份证 已脱敏 已隐藏 氏名 名前 住所 電話 メール 携帯 番号 伏せ字 匿名";
    inner.chars().count() <= 12 && WORDS.split(' ').any(|word| inner.contains(word))
}

/// `{{first_name}}`: a template's place for a name.
fn template_name(found: &str, inner: &str) -> bool {
    found.starts_with("{{")
        && is_one_of(inner, "first_name last_name full_name email phone phone_number address")
}
