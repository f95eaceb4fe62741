//! Finds personal data and credentials in plain text, grades the risk and redacts what is raw.
//!
//! The detector knows shapes, checksums and words that announce something, not people. It finds no
//! names. It does not undo encodings (`%40`, Base64), and it does not look through zero-width
//! characters. Forms of Germany, Austria, Switzerland, France, the United Kingdom, the USA,
//! mainland China, Japan and India are known; of other countries only what has an international
//! form. [`PiiRisk::None`] does not prove that a text is harmless.
//!
//! Digits of the full-width and Arabic-Indic blocks, full-width Latin letters and punctuation,
//! typographic spaces and typographic hyphens are read as their ASCII forms. Ranges always refer to
//! the original text.
//!
//! Work and memory are linear in the length of the text. Patterns are beside their checks; they
//! only find anchors. A check around an anchor reads a bounded stretch of text, or text that at
//! most one other anchor of its rule reads.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::ops::Range;

mod announced;
mod births;
mod check;
mod marks;
mod national;
mod passwords;
mod people;
mod phones;
mod places;
mod rules;
mod spelled;
mod systems;
#[cfg(test)]
mod tests;
mod text;

/// How often [`redact`] repeats before it gives up on a text and drops it. One pass is enough for
/// nearly all texts.
const MAX_PASSES: usize = 8;

/// What [`redact`] returns for a text that still holds raw data after [`MAX_PASSES`].
const WITHHELD: &str = "[redacted]";

/// How much personal data a text appears to hold. The order of the variants is the order of the
/// risk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum PiiRisk {
    /// Level 0: nothing was detected.
    #[default]
    None = 0,
    /// Level 1: data that was redacted or masked already, or a weak hint such as "date of birth".
    Possible = 1,
    /// Level 2: raw personal data or a credential.
    High = 2,
}

impl PiiRisk {
    /// The level as a number from 0 to 2.
    #[must_use]
    pub const fn level(self) -> u8 {
        self as u8
    }
}

/// What a [`Finding`] is. The limits named here are deliberate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PiiKind {
    /// An e-mail address as in RFC 5321, without quoted local parts, or one in words such as `joe
    /// at example dot com`. Latin, Greek and Cyrillic letters are accepted, other scripts are not.
    /// The length limits of the RFC are not enforced. `git@` remotes, asset names such as
    /// `icon@2x.png` and package versions such as `name@1.2.3` are not addresses.
    Email,
    /// A phone number: international with `+` or `00` (ITU-T E.164, 8 to 15 digits), North American
    /// with separators (NANP, fictional 555 numbers included), with a trunk zero and separators, a
    /// mobile number of Germany, France, the United Kingdom, Japan or mainland China, or 7 to 15
    /// digits after a word such as "phone", "tel" or "fax". A number behind a word such as "order"
    /// is none.
    Phone,
    /// A payment card number of 13 to 19 digits with a known issuer prefix and a valid Luhn digit
    /// (ISO/IEC 7812-1). One in ten random numbers with such a prefix passes, so long numeric ids
    /// can be false hits.
    Card,
    /// An IBAN of the length its country uses and with a valid mod 97 check (ISO 13616, ISO 7064).
    Iban,
    /// A US social security number with dashes, without the ranges that the SSA never assigns.
    /// Numbers that became known as samples are not exempt.
    Ssn,
    /// A public IPv4 or IPv6 address. Special ranges of the IANA registries (RFC 6890) and whole
    /// networks such as `8.8.8.0/24` are not personal data. Four numbers behind a word such as
    /// "version" are read as a version.
    IpAddress,
    /// A credential: well-known token shapes, JSON web tokens (RFC 7519), PEM private keys (RFC
    /// 7468) and literal values of 8 or more characters assigned to a name such as `password` or
    /// `api_key`. A value of letters only is no more than [`PiiRisk::Possible`], because most of
    /// them are words or type names. Behind a word for a password 4 characters with a digit are
    /// enough, and in `my password is swordfish` letters.
    Secret,
    /// A passport number (6 to 12 letters and digits, at least five of them digits), only behind
    /// the word "passport".
    Passport,
    /// A number that a state gives to a person, such as an AHV number, a tax number or a driving
    /// licence: by its check digits or letters, or behind a word that announces it.
    NationalId,
    /// The number of a bank account that is no IBAN, behind a word that announces it, or an Indian
    /// payment address.
    BankAccount,
    /// A date with its year behind a word such as "born".
    BirthDate,
    /// A street with a house number, or a town with its postal code, in the forms of the countries
    /// named above.
    PostalAddress,
    /// Data that was redacted or masked before, such as `[EMAIL]` or `****1234`. Always
    /// [`PiiRisk::Possible`].
    Redacted,
    /// Words that announce personal data, such as "my phone number is". Always
    /// [`PiiRisk::Possible`].
    Hint,
}

impl PiiKind {
    /// The text that [`redact`] puts in place of a finding. No placeholder is itself a
    /// [`PiiRisk::High`] finding.
    #[must_use]
    pub const fn placeholder(self) -> &'static str {
        match self {
            Self::Email => "[EMAIL]",
            Self::Phone => "[PHONE]",
            Self::Card => "[CARD]",
            Self::Iban => "[IBAN]",
            Self::Ssn => "[SSN]",
            Self::IpAddress => "[IP_ADDRESS]",
            Self::Secret => "[SECRET]",
            Self::Passport => "[PASSPORT]",
            Self::NationalId => "[NATIONAL_ID]",
            Self::BankAccount => "[ACCOUNT]",
            Self::BirthDate => "[BIRTH_DATE]",
            Self::PostalAddress => "[ADDRESS]",
            Self::Redacted | Self::Hint => WITHHELD,
        }
    }
}

/// One place in a text that holds, or may hold, personal data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was found.
    pub kind: PiiKind,
    /// Where it is, in bytes. Both ends are character boundaries.
    pub range: Range<usize>,
    /// How sure it is that this is raw data.
    pub risk: PiiRisk,
}

impl Finding {
    const fn high(kind: PiiKind, range: Range<usize>) -> Self {
        Self { kind, range, risk: PiiRisk::High }
    }

    const fn possible(kind: PiiKind, range: Range<usize>) -> Self {
        Self { kind, range, risk: PiiRisk::Possible }
    }
}

/// Finds personal data and credentials in `text`.
///
/// The findings are sorted by start and do not overlap. The riskier of two that overlap stays. If
/// both have the same risk they become one finding over both ranges with the kind of the longer
/// one, so that redaction leaves no fragment of the other.
#[must_use]
pub fn scan(text: &str) -> Vec<Finding> {
    let Some((folded, origins)) = fold(text) else {
        return settle(collect(text));
    };
    let mut found = collect(&folded);
    for finding in &mut found {
        let origin = |at: usize| origins.get(at).copied().unwrap_or(text.len());
        finding.range = origin(finding.range.start)..origin(finding.range.end);
    }
    settle(found)
}

/// The highest risk of all findings in `text`.
#[must_use]
pub fn risk(text: &str) -> PiiRisk {
    scan(text).iter().map(|finding| finding.risk).max().unwrap_or_default()
}

/// Replaces every [`PiiRisk::High`] finding by its [`PiiKind::placeholder`].
///
/// The result never has a higher risk than [`PiiRisk::Possible`], so redacting it again changes
/// nothing. A replacement can bring two remains together that then look like raw data. Such a text
/// is redacted again. If a few rounds do not settle it, it was built to resist, and the whole text
/// is replaced by `[redacted]`.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut current = Cow::Borrowed(text);
    for _ in 0..MAX_PASSES {
        match redact_once(&current) {
            Some(next) => current = Cow::Owned(next),
            None => return current,
        }
    }
    if risk(&current) == PiiRisk::High { Cow::Borrowed(WITHHELD) } else { current }
}

/// One round of [`redact`], or `None` if there is nothing to replace.
fn redact_once(text: &str) -> Option<String> {
    let found = scan(text);
    let mut raw = found.iter().filter(|finding| finding.risk == PiiRisk::High).peekable();
    raw.peek()?;
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for finding in raw {
        out.push_str(&text[done..finding.range.start]);
        out.push_str(finding.kind.placeholder());
        done = finding.range.end;
    }
    out.push_str(&text[done..]);
    Some(out)
}

/// Runs every rule over a folded text. The result is neither sorted nor free of overlaps.
fn collect(text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for rule in rules::RULES.iter() {
        let mut from = 0;
        // An empty match would not move on. A test proves that no pattern has one.
        while let Some(anchor) = rule.regex.find_at(text, from).filter(|anchor| !anchor.is_empty())
        {
            from = anchor.end();
            if let Some(finding) = (rule.check)(text, anchor.range()) {
                from = from.max(finding.range.end);
                found.push(finding);
            }
        }
    }
    found
}

/// Sorts findings and removes overlaps in the way that [`scan`] promises.
fn settle(found: Vec<Finding>) -> Vec<Finding> {
    let (raw, weak): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|finding| finding.risk == PiiRisk::High);
    let mut settled = merge(raw);
    let mut weak = merge(weak);
    weak.retain(|finding| {
        let next = settled.partition_point(|other| other.range.end <= finding.range.start);
        settled.get(next).is_none_or(|other| other.range.start >= finding.range.end)
    });
    settled.append(&mut weak);
    settled.sort_by_key(|finding| finding.range.start);
    settled
}

/// Joins overlapping findings of one risk. The longest of a group gives its kind.
fn merge(mut found: Vec<Finding>) -> Vec<Finding> {
    found.sort_by_key(|finding| (finding.range.start, Reverse(finding.range.end)));
    let mut merged: Vec<Finding> = Vec::with_capacity(found.len());
    let mut longest = 0;
    for finding in found {
        let len = finding.range.len();
        match merged.last_mut() {
            Some(last) if finding.range.start < last.range.end => {
                last.range.end = last.range.end.max(finding.range.end);
                if len > longest {
                    (last.kind, longest) = (finding.kind, len);
                }
            }
            _ => {
                longest = len;
                merged.push(finding);
            }
        }
    }
    merged
}

/// Rewrites typographic variants as ASCII. Returns the new text and, for each of its bytes, the
/// offset of the character it came from. `None` means that the text can be read as it is, which is
/// the usual case.
fn fold(text: &str) -> Option<(String, Vec<usize>)> {
    if text.is_ascii() || text.chars().all(|c| fold_char(c) == c) {
        return None;
    }
    let mut folded = String::with_capacity(text.len());
    let mut origins = Vec::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        folded.push(fold_char(c));
        origins.resize(folded.len(), at);
    }
    Some((folded, origins))
}

/// The ASCII form of one character, or the character itself.
fn fold_char(c: char) -> char {
    let ascii =
        |base: u32, zero: u8| u8::try_from(u32::from(c) - base).map_or(c, |n| char::from(zero + n));
    match c {
        '\u{FF01}'..='\u{FF5E}' => ascii(0xFF01, b'!'),
        '\u{0660}'..='\u{0669}' => ascii(0x0660, b'0'),
        '\u{06F0}'..='\u{06F9}' => ascii(0x06F0, b'0'),
        '\u{00A0}' | '\u{2007}' | '\u{2009}' | '\u{202F}' | '\u{3000}' => ' ',
        // No em dash: it separates words, so it must not tie a number to the word behind it.
        '\u{2010}'..='\u{2013}' | '\u{2212}' => '-',
        _ => c,
    }
}
