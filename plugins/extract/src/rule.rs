//! Rules and how they are matched.

use std::sync::{LazyLock, OnceLock};

use regex_lite::Regex;

use super::clause::Clause;
use crate::kind::Kind;
use crate::rules;

/// One rule: its pattern, the pattern that excludes it, and its confidence.
///
/// Patterns see the clause in the form of [`Clause::plain`]: lower case, contractions written out,
/// greetings gone. `{i}` and the like are fragments, see [`rules::filled`].
#[derive(Debug)]
pub(crate) struct Rule {
    /// Stable, `kind.what-it-looks-for`: it is stored in every item that the rule made.
    pub(crate) id: &'static str,
    /// Words of which the clause must have one before the pattern is tried; empty: it is always
    /// tried.
    pub(crate) cues: &'static str,
    pub(crate) pattern: &'static str,
    /// The pattern that excludes it; empty: none.
    pub(crate) unless: &'static str,
    /// What the clause must be as it was written, with its capitals; empty: anything.
    pub(crate) written: &'static str,
    /// 0 to 1, before adjustments.
    pub(crate) confidence: f64,
    pub(crate) tags: &'static [&'static str],
    /// Whether a question can be meant so: `could you always cite your sources?`
    pub(crate) asks: bool,
    /// Whether the clause must say whose or when it is: see `Clause::is_anchored`.
    pub(crate) anchored: bool,
}

impl Rule {
    pub(crate) const fn new(
        id: &'static str,
        confidence: f64,
        cues: &'static str,
        pattern: &'static str,
    ) -> Self {
        Self {
            id,
            cues,
            pattern,
            unless: "",
            written: "",
            confidence,
            tags: &[],
            asks: false,
            anchored: false,
        }
    }

    pub(crate) const fn unless(mut self, pattern: &'static str) -> Self {
        self.unless = pattern;
        self
    }

    pub(crate) const fn written(mut self, pattern: &'static str) -> Self {
        self.written = pattern;
        self
    }

    pub(crate) const fn tags(mut self, tags: &'static [&'static str]) -> Self {
        self.tags = tags;
        self
    }

    pub(crate) const fn anchored(mut self) -> Self {
        self.anchored = true;
        self
    }

    pub(crate) const fn asks(mut self) -> Self {
        self.asks = true;
        self
    }
}

/// A rule with its kind and its patterns, which are compiled when the first clause has one of its
/// cues.
pub(crate) struct Ready {
    pub(crate) kind: Kind,
    /// Whether it is for clauses in Chinese; the others are for English.
    chinese: bool,
    pub(crate) rule: &'static Rule,
    pattern: OnceLock<Option<Regex>>,
    unless: OnceLock<Option<Regex>>,
    written: OnceLock<Option<Regex>>,
}

/// All rules, in the order of the kinds. A test compiles every pattern.
pub(crate) static RULES: LazyLock<Vec<Ready>> = LazyLock::new(|| {
    let ready = |kind: Kind, chinese: bool| {
        move |rule| {
            let (pattern, unless, written) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
            Ready { kind, chinese, rule, pattern, unless, written }
        }
    };
    let of = |kind: Kind| {
        rules::of(kind)
            .map(ready(kind, false))
            .chain(rules::of_chinese(kind).map(ready(kind, true)))
    };
    Kind::ALL.into_iter().flat_map(of).collect()
});

/// A pattern with its fragments filled in.
pub(crate) fn compile(pattern: &str) -> Option<Regex> {
    Regex::new(&rules::filled(pattern)).ok()
}

impl Ready {
    /// Whether the clause is what the rule looks for.
    pub(crate) fn matches(&self, clause: &Clause) -> bool {
        let cues = self.rule.cues;
        if self.chinese != clause.is_chinese {
            return false;
        }
        if !cues.is_empty() && !cues.split(' ').any(|cue| clause.has(cue)) {
            return false;
        }
        if clause.is_question && !self.rule.asks || self.rule.anchored && !clause.is_anchored() {
            return false;
        }
        let pattern = self.pattern.get_or_init(|| compile(self.rule.pattern));
        if !pattern.as_ref().is_some_and(|pattern| pattern.is_match(&clause.plain)) {
            return false;
        }
        if !self.rule.written.is_empty() {
            let written = self.written.get_or_init(|| compile(self.rule.written));
            if !written.as_ref().is_some_and(|written| written.is_match(&clause.text)) {
                return false;
            }
        }
        self.rule.unless.is_empty() || {
            let unless = self.unless.get_or_init(|| compile(self.rule.unless));
            !unless.as_ref().is_some_and(|unless| unless.is_match(&clause.plain))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_rule_compiles_and_is_named_after_its_kind() {
        let mut ids = BTreeSet::new();
        for ready in RULES.iter() {
            let rule = ready.rule;
            assert!(rule.id.starts_with(&format!("{}.", ready.kind.name())), "{}", rule.id);
            assert!(ids.insert(rule.id), "{} is there twice", rule.id);
            assert!(compile(rule.pattern).is_some(), "the pattern of {} is wrong", rule.id);
            for (name, pattern) in [("unless", rule.unless), ("written", rule.written)] {
                assert!(
                    pattern.is_empty() || compile(pattern).is_some(),
                    "`{name}` of {} is wrong",
                    rule.id
                );
            }
            for pattern in [rule.pattern, rule.unless, rule.written] {
                let filled = rules::filled(pattern);
                let named = filled
                    .split('{')
                    .skip(1)
                    .find(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
                assert_eq!(named, None, "{} names a fragment that is not there", rule.id);
            }
            assert!((0.5..=0.95).contains(&rule.confidence), "{}", rule.id);
            assert!(!compile(rule.pattern).unwrap().is_match(""), "{} matches everything", rule.id);
        }
        assert!(ids.len() > 60);
    }
}
