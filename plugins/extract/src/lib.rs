//! Extracts candidates from a captured text, by rules that each candidate names.
//!
//! A text becomes sentences, a sentence clauses. Every rule is tried on every clause. Of the rules
//! that match, the one with the highest confidence decides. There is no model and no state: the
//! same text gives the same candidates.

mod adjust;
mod clause;
pub mod due;
pub mod kind;
mod lines;
mod rule;
mod rules;
mod speakers;
mod typing;

pub use kind::{Group, Kind};
pub use lines::sentences;
pub use speakers::{Speaker, is_machine, speaker};

use adjust::{adjusted, adjustments};
use clause::{Clause, clauses};
use rule::RULES;
pub(crate) use rule::Rule;

/// A candidate for an item.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Its kind.
    pub kind: Kind,
    /// The statement, as it was written.
    pub text: String,
    /// 0 to 1: the rule's confidence with all adjustments.
    pub confidence: f64,
    /// The rule that found it, such as `preference.prefer`.
    pub rule: &'static str,
    /// The names of the adjustments of the confidence.
    pub adjustments: Vec<(&'static str, f64)>,
    /// The topics of the rule.
    pub tags: Vec<String>,
    /// Whom it is about: `user`, `team`, `project` or `other`.
    pub subject: &'static str,
    /// The sentence that contains it.
    pub evidence: String,
}

/// The candidates of a text, in its order, each statement once.
pub fn extract(text: &str) -> Vec<Candidate> {
    candidates(&sentences(text))
}

/// The candidates of some sentences, as [`sentences`] splits a text.
pub fn candidates(sentences: &[(String, Speaker)]) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    // What a machine says or prints is no statement of the user and no decision.
    for (sentence, _) in sentences.iter().filter(|(_, speaker)| *speaker != Speaker::Machine) {
        for clause in clauses(sentence) {
            // `Keep in mind that …` makes a note of what would be nothing or a mere statement
            // without it.
            let bare = judge(&clause, sentence);
            let weak = |found: &Candidate| {
                matches!(found.kind, Kind::Fact | Kind::Project | Kind::Hypothesis)
            };
            let lead = clause.with_lead().filter(|_| bare.as_ref().is_none_or(weak));
            let led = lead.and_then(|clause| judge(&clause, sentence));
            let led = led.filter(|found| bare.is_none() || found.kind == Kind::Note);
            let Some(candidate) = led.or(bare) else { continue };
            let is_new =
                |other: &Candidate| other.kind != candidate.kind || other.text != candidate.text;
            if found.iter().all(is_new) {
                found.push(candidate);
            }
        }
    }
    found
}

/// The match with the highest confidence; of equal ones the first in the order of kinds and rules.
fn judge(clause: &Clause, sentence: &str) -> Option<Candidate> {
    let mut best: Option<Candidate> = None;
    for ready in RULES.iter().filter(|ready| ready.matches(clause)) {
        let adjustments = adjustments(clause, ready.kind);
        let confidence = adjusted(ready.rule.confidence, &adjustments);
        if best.as_ref().is_none_or(|best| confidence > best.confidence) {
            best = Some(Candidate {
                kind: ready.kind,
                text: clause.text.trim_start_matches("[ ] ").to_owned(),
                confidence,
                rule: ready.rule.id,
                adjustments,
                tags: ready.rule.tags.iter().map(|tag| (*tag).to_owned()).collect(),
                subject: subject(clause),
                evidence: sentence.to_owned(),
            });
        }
    }
    best
}

/// Whom a clause is about, by the first word that shows it.
fn subject(clause: &Clause) -> &'static str {
    for word in clause.plain.split(|c: char| !c.is_alphanumeric()).take(6) {
        match word {
            "i" | "my" | "me" | "mine" | "user" => return "user",
            "we" | "our" | "us" | "team" => return "team",
            "project" | "codebase" | "repo" | "repository" | "app" | "product" => return "project",
            _ => {}
        }
    }
    "other"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Candidate {
        let mut found = extract(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        found.remove(0)
    }

    #[test]
    fn a_candidate_names_its_rule_and_adjustments() {
        let found = one("By the way, maybe I prefer tea.");
        assert_eq!((found.kind, found.rule), (Kind::Preference, "preference.prefer"));
        assert_eq!(found.adjustments, [("hedged", -0.25)]);
        let sure = one("I prefer tea.");
        assert!(sure.confidence > 0.8 && found.confidence < 0.6, "{found:?}");
        assert_eq!((sure.evidence.as_str(), sure.subject), ("I prefer tea.", "user"));
    }

    #[test]
    fn the_examples_of_the_taxonomy_are_of_their_kinds() {
        let examples = [
            (Kind::Profile, "My name is Jerry"),
            (Kind::Profile, "I'm a PhD student at MIT"),
            (Kind::Preference, "I prefer concise answers"),
            (Kind::Preference, "Use Chinese for responses"),
            (Kind::Goal, "I'm researching LLM memory systems"),
            (Kind::Goal, "Working on a paper about RAG"),
            (Kind::Constraint, "Never include code examples"),
            (Kind::Constraint, "Always cite sources"),
            (Kind::Project, "PaperBot is a research workflow tool"),
            (Kind::Project, "The codebase uses FastAPI"),
            (Kind::Fact, "User's deadline is Friday"),
            (Kind::Fact, "Paper was submitted to NeurIPS"),
            (Kind::Decision, "We chose SQLite over Postgres"),
            (Kind::Decision, "Using Docker for sandboxing"),
            (Kind::Hypothesis, "User may be a graduate student"),
            (Kind::Hypothesis, "Likely interested in NLP"),
            (Kind::Todo, "Need to implement FTS5"),
            (Kind::Todo, "Review the memory module"),
            (Kind::KeywordSet, "Focus areas: RAG, memory, multi-agent"),
            (Kind::Note, "Important: check GDPR compliance"),
            (Kind::Note, "Consider using vector DB"),
        ];
        for (kind, text) in examples {
            let found = one(text);
            assert_eq!(found.kind, kind, "{text}: {}", found.rule);
            assert!(
                found.confidence >= kind.threshold(),
                "{text}: {} by {}",
                found.confidence,
                found.rule
            );
        }
    }

    #[test]
    fn refusals_and_hedges_are_not_approved() {
        let texts = [
            "I prefer not to say.",
            "I'd prefer not to answer that.",
            "I'd rather not say.",
            "他昨天没来上班。",
            "We could switch to Bazel, I guess.",
            "We might go with Mongo.",
            "ChatGPT said we decided to use Redis.",
        ];
        for text in texts {
            let found = extract(text);
            // A guess may be one: it ranks last and expires.
            let is_held =
                |found: &Candidate| found.confidence < 0.60 || found.kind == Kind::Hypothesis;
            assert!(found.iter().all(is_held), "{text}: {found:?}");
        }
    }

    #[test]
    fn careless_names_and_wishes_are_of_their_kinds() {
        for (kind, text) in [
            (Kind::Profile, "my names Tomasz, i do embedded firmware"),
            (Kind::Preference, "dont bother w long intros, just get to the point"),
            (Kind::Preference, "please just get straight to the point"),
            (Kind::Preference, "Please always answer me in bullet points."),
            (Kind::Preference, "I'd prefer not to be contacted by telephone."),
            (Kind::Constraint, "Always ask me before you delete files."),
            (Kind::Note, "We could use a larger font."),
        ] {
            let found = one(text);
            assert!(found.kind == kind && found.confidence >= 0.60, "{text}: {found:?}");
        }
    }

    #[test]
    fn a_sentence_of_two_statements_gives_two_candidates() {
        let kinds: Vec<Kind> =
            extract("I'm a nurse, and I prefer short answers.").iter().map(|c| c.kind).collect();
        assert_eq!(kinds, [Kind::Profile, Kind::Preference]);
    }

    #[test]
    fn questions_machines_and_past_statements_are_ignored() {
        assert!(extract("Do I prefer tea?").is_empty());
        let sure =
            |text| extract(text).iter().any(|found| found.confidence >= found.kind.threshold());
        assert!(!sure("assistant: I prefer tea."));
        assert!(!sure("I used to prefer tea."));
        assert!(!sure("If I were a doctor, I would prefer tea."));
    }
}
