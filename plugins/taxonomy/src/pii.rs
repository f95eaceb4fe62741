//! Personal data and credentials in a text, by the detector that the host uses, too.

use memhost_pii::{PiiRisk, redact as redacted, risk, scan};

/// The highest level in a text: 0 nothing, 1 redacted or announced, 2 raw.
pub(crate) fn level(text: &str) -> u8 {
    risk(text).level()
}

/// The kinds of raw data in a text, by the names of their placeholders, for a message.
pub(crate) fn found(text: &str) -> String {
    let raw = scan(text).into_iter().filter(|finding| finding.risk == PiiRisk::High);
    let mut names: Vec<&str> = raw.map(|finding| finding.kind.placeholder()).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

/// The text with every piece of raw data replaced by its placeholder. Never of level 2.
pub(crate) fn redact(text: &str) -> String {
    redacted(text).into_owned()
}
