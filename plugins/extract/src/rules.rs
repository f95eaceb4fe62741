//! The rules, as tables: one file for each group of kinds. They are written from the taxonomy's
//! definitions and from how people say such things in English.

/// A file's rules by kind: it has a table for each.
macro_rules! of_every_kind {
    () => {
        /// The rules of a kind.
        pub(super) const fn of(kind: Kind) -> &'static [Rule] {
            match kind {
                Kind::Profile => PROFILE,
                Kind::Preference => PREFERENCE,
                Kind::Goal => GOAL,
                Kind::Constraint => CONSTRAINT,
                Kind::Project => PROJECT,
                Kind::Fact => FACT,
                Kind::Decision => DECISION,
                Kind::Hypothesis => HYPOTHESIS,
                Kind::Todo => TODO,
                Kind::KeywordSet => KEYWORD_SET,
                Kind::Note => NOTE,
            }
        }
    };
}

mod aims;
mod chinese;
mod episodic;
mod everyday;
mod fragments;
mod open;
mod project;
mod terms;
mod user;
mod workspace;

use crate::Rule;
use crate::kind::Kind;

pub(crate) use fragments::filled;

/// The rules of a kind for English.
pub(crate) fn of(kind: Kind) -> impl Iterator<Item = &'static Rule> {
    defined(kind).iter().chain(everyday::of(kind)).chain(terms::of(kind))
}

/// The rules of a kind for Chinese.
pub(crate) fn of_chinese(kind: Kind) -> impl Iterator<Item = &'static Rule> {
    chinese::of(kind).iter()
}

const fn defined(kind: Kind) -> &'static [Rule] {
    match kind {
        Kind::Profile => user::PROFILE,
        Kind::Preference => user::PREFERENCE,
        Kind::Goal => aims::GOAL,
        Kind::Constraint => aims::CONSTRAINT,
        Kind::Project => project::PROJECT,
        Kind::Fact => episodic::FACT,
        Kind::Decision => episodic::DECISION,
        Kind::Hypothesis => open::HYPOTHESIS,
        Kind::Todo => open::TODO,
        Kind::KeywordSet => workspace::KEYWORD_SET,
        Kind::Note => workspace::NOTE,
    }
}
