//! Circumstances that change the confidence of a rule, the same for all kinds.

use std::sync::LazyLock;

use regex_lite::Regex;

use super::clause::Clause;
use super::lines::Speaker;
use crate::due;
use crate::kind::{Group, Kind};

/// One circumstance: its pattern, how much it adds, and the kinds that it applies to.
struct Adjuster {
    id: &'static str,
    pattern: &'static str,
    by: f64,
    concerns: fn(Kind) -> bool,
}

const fn about(id: &'static str, by: f64, pattern: &'static str, concerns: fn(Kind) -> bool) -> Adjuster {
    Adjuster { id, pattern, by, concerns }
}

/// Patterns see [`Clause::plain`].
const ADJUSTERS: &[Adjuster] = &[
    about(
        "hedged",
        -0.25,
        r"\b(?:maybe|perhaps|probably|possibly|presumably|apparently|supposedly|likely|might|i (?:think|guess|suppose|assume|believe|suspect|wonder)|sort of|kind of|not (?:sure|certain)|no idea|seems?|unsure|unclear|not decided|my (?:guess|hunch|theory|hypothesis|suspicion|assumption) is)\b",
        |kind| !matches!(kind, Kind::Hypothesis | Kind::Note),
    ),
    about(
        "conditional",
        -0.3,
        r"^(?:if (?:i|we|you|it|they|he|she|only) |suppose|imagine|assuming|what if|had (?:i|we)|unless|in case)|\bwould have\b",
        |kind| !matches!(kind, Kind::Hypothesis | Kind::Constraint | Kind::Preference),
    ),
    about(
        "counterfactual",
        -0.3,
        r"^if (?:i|we|you|he|she|they|it) (?:were|had)\b|\bhad i (?:known|been|had)\b",
        |kind| matches!(kind, Kind::Constraint | Kind::Preference),
    ),
    about("over", -0.3, r"\b(?:i|we|user) used to\b|\bno longer\b|\banymore\b|\bback then\b", |kind| {
        matches!(kind, Kind::Profile | Kind::Preference | Kind::Goal | Kind::Project)
    }),
    about(
        "reported",
        -0.3,
        r"\b(?:he|she|they|people|someone|somebody|everyone|the (?:article|author|book|paper|docs?|post|result|guy|speaker)s?) (?:said|says|claims?|claimed|wrote|writes|argues?|thinks?|believes?|told)\b",
        |kind| kind != Kind::Hypothesis,
    ),
    about("in jest", -0.4, r"\b(?:lol|haha+|just kidding|jk|lmao|rofl)\b|;-?\)", |_| true),
    about(
        "for this once",
        -0.25,
        r"\b(?:right now|at the moment|just this once|this time|this (?:one|answer|reply|response|email|message|paragraph|sentence|function|file|text|article|question|page|section|code|line|document|part)|that (?:one|answer|paragraph|sentence|function|file|line|part)|the (?:above|following|attached|first|second|third|last|next) )",
        |kind| matches!(kind, Kind::Profile | Kind::Preference | Kind::Constraint | Kind::Goal),
    ),
    about(
        "standing",
        0.05,
        r"\b(?:always|never|every time|whenever|in general|by default|from now on|going forward|at all times|under no circumstances|without exception|all (?:my|your|our)|any)\b",
        |kind| matches!(kind, Kind::Preference | Kind::Constraint),
    ),
    about("of no thing", -0.25, r"^(?:please )?\w+ (?:it|this|that|them|these|those)\b", |kind| kind == Kind::Todo),
    about("please", -0.1, r"^please |, please\W*$", |kind| kind == Kind::Todo),
];

static PATTERNS: LazyLock<Vec<(&Adjuster, Regex)>> = LazyLock::new(|| {
    let compile = |adjuster: &'static Adjuster| Some((adjuster, Regex::new(adjuster.pattern).ok()?));
    ADJUSTERS.iter().filter_map(compile).collect()
});

/// Leads that ask to remember what follows.
const EXPLICIT: [&str; 9] = [
    "remember",
    "note",
    "keep in mind",
    "bear in mind",
    "for the record",
    "just so you know",
    "for your information",
    "from now on",
    "should know",
];

/// The adjustments for a rule of this kind, by name.
pub(crate) fn adjustments(clause: &Clause, kind: Kind) -> Vec<(&'static str, f64)> {
    let mut found: Vec<(&'static str, f64)> = PATTERNS
        .iter()
        .filter(|(adjuster, pattern)| (adjuster.concerns)(kind) && pattern.is_match(&clause.plain))
        .map(|(adjuster, _)| (adjuster.id, adjuster.by))
        .collect();
    if EXPLICIT.iter().any(|words| clause.lead.contains(words)) {
        found.push(("explicit", 0.06));
    }
    if kind == Kind::Todo && due::mentions(&clause.plain) {
        found.push(("dated", 0.06));
    }
    if clause.words() < 3 && kind != Kind::KeywordSet {
        found.push(("short", -0.15));
    }
    // A statement with so many words at once cannot stand alone.
    if clause.words() > 60 {
        found.push(("long", -0.15));
    }
    // The machine's `I` is not the user, and its proposals are not decisions.
    if clause.speaker == Speaker::Assistant && (kind.group() == Group::User || kind == Kind::Todo) {
        found.push(("said by the assistant", -0.5));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_circumstance_compiles() {
        assert_eq!(PATTERNS.len(), ADJUSTERS.len());
    }
}
