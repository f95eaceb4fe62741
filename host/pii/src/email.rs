//! Mail addresses.

use std::ops::Range;

use crate::finding::{Check, Finding, PiiKind};
use crate::text::{MASKS, is_one_of};

pub(crate) const SPECS: &[(&str, Check)] = &[(r"@", email)];

fn is_mail_char(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || ('\u{C0}'..='\u{52F}').contains(&c)
        || ".-".contains(c)
        || MASKS.contains(&c)
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

/// The longest start of `domain` that can be a mail domain. Without a list of all top-level domains
/// this accepts any two or more letters, apart from endings that are common in code and are no
/// top-level domains.
fn valid_domain(domain: &str) -> Option<&str> {
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
