//! All rules, in test order.

mod admission;
mod browse;
mod capture;
mod configuration;
mod correction;
mod erasure;
mod errors;
mod explain;
mod extraction;
mod forget;
mod get;
mod health;
mod list;
mod migration;
mod partition;
mod profile;
mod query;
mod restart;
mod review;
mod transfer;
mod upsert;

use std::fmt::Write as _;

use super::rule::{Mode, Rule};

/// The rule whose binding has no optional grants.
pub(super) const WITHOUT_OPTIONAL: &str = configuration::WITHOUT_OPTIONAL;

/// The groups of rules, with their titles.
const GROUPS: &[(&str, &[Rule])] = &[
    ("Admission and description", admission::RULES),
    ("Configuration and permissions", configuration::RULES),
    ("Capture", capture::RULES),
    ("Upserts", upsert::RULES),
    ("Queries", query::RULES),
    ("Partitions", partition::RULES),
    ("Lists", list::RULES),
    ("Single records", get::RULES),
    ("Forgetting", forget::RULES),
    ("Restarts and several instances", restart::RULES),
    ("Errors", errors::RULES),
    ("Correction", correction::RULES),
    ("Summaries", profile::RULES),
    ("Extraction", extraction::RULES),
    ("Explanation", explain::RULES),
    ("Browsing", browse::RULES),
    ("Review", review::RULES),
    ("Export and import", transfer::RULES),
    ("Migration", migration::RULES),
    ("Health", health::RULES),
    ("Erasure", erasure::RULES),
];

/// Every rule.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    GROUPS.iter().flat_map(|(_, rules)| rules.iter())
}

/// Whether the rule is about captures or curated writes.
pub(super) fn is_about_writing(rule: &Rule) -> bool {
    let mut writing = capture::RULES.iter().chain(upsert::RULES);
    writing.any(|known| known.id == rule.id)
}

/// Every rule with its expectation and its source in the contract, as Markdown.
pub fn handbook() -> String {
    let mut text = String::from(
        "# Conformance: the rules for providers\n\n`memhost plugin check FILE.wasm` tests them, \
         and \
         `memhost plugin check --list-rules` prints this page. Each rule has a title, what the \
         suite does and expects, \
         and the sentence of the contract that it comes from. An id is never given to another \
         rule. Rules of an \
         optional interface are tested if the component exports the interface. Those marked \
         *thorough* need \
         `--thorough`. A provider that declares what stands behind *not with* is not tested for \
         that rule; with \
         `read_after_write` the suite waits a second after each write.\n",
    );
    for (title, rules) in GROUPS {
        // Writing to a text does not fail.
        let _ = write!(text, "\n## {title}\n");
        for rule in *rules {
            let mut marks = String::new();
            if let Some(interface) = rule.interface {
                let _ = write!(marks, " (`{}`)", interface.name());
            }
            if rule.mode == Mode::Thorough {
                marks.push_str(" (*thorough*)");
            }
            let declared = rule
                .unless
                .iter()
                .map(ToString::to_string)
                .chain(rule.left.iter().map(ToString::to_string));
            let declared: Vec<String> = declared.map(|name| format!("`{name}`")).collect();
            if !declared.is_empty() {
                let _ = write!(marks, " (not with {})", declared.join(", "));
            }
            let contract = &rule.contract;
            let _ = write!(
                text,
                "\n**{}** {}{marks}. {}\n> {} `{}`, {}\n",
                rule.id, rule.title, rule.expects, contract.text, contract.item, contract.file
            );
        }
    }
    text
}
