//! Ranking: relevance × priority of the kind × decay × confidence.

use std::collections::BTreeMap;

use jiff::Timestamp;
use memhost_sdk::types::{Contribution, Intent};

use crate::config::Config;
use crate::kind::Kind;
use crate::lifetime::decay;
use crate::store::Held;

/// An old fact counts at least so much, so that it is still found before what answers the question
/// worse.
const FADED: f64 = 0.3;

/// The parts of a score; each 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Parts {
    pub(crate) relevance: f64,
    pub(crate) priority: f64,
    pub(crate) decay: f64,
    pub(crate) confidence: f64,
}

/// A hit: its id, its kind, its score from 0 to 1, and the parts of the score.
#[derive(Debug, Clone)]
pub(crate) struct Hit {
    pub(crate) id: String,
    pub(crate) kind: Kind,
    pub(crate) score: f64,
    pub(crate) parts: Parts,
}

impl Parts {
    fn product(self) -> f64 {
        self.relevance * self.priority * self.decay * self.confidence
    }

    /// For `explain`.
    pub(crate) fn contributions(self) -> Vec<Contribution> {
        [
            ("relevance", self.relevance),
            ("priority", self.priority),
            ("decay", self.decay),
            ("confidence", self.confidence),
        ]
        .map(|(name, value)| Contribution { name: name.to_owned(), value })
        .into()
    }
}

/// The best of the items that may be returned, best first. Without a word in the question a
/// preamble gets all kinds in their order, rules first; other intents get nothing.
pub(crate) fn rank(
    config: &Config,
    items: &[&Held],
    question: &[String],
    intent: &Intent,
    top: usize,
    now: Timestamp,
) -> Vec<Hit> {
    if question.is_empty() && *intent != Intent::AgentPreamble {
        return Vec::new();
    }
    let rarity = rarities(items, question);
    let most: f64 = rarity.values().sum();
    let mut hits: Vec<(Hit, Timestamp)> = Vec::new();
    for held in items {
        let item = &held.item;
        let relevance = if question.is_empty() { 1.0 } else { relevance(held, &rarity) / most };
        if relevance <= 0.0 {
            continue;
        }
        let since = held.used.map_or(item.ages_from(), |used| used.last.max(item.ages_from()));
        let uses = held.used.map_or(0, |used| used.count);
        let parts = Parts {
            relevance,
            priority: item.kind.priority(),
            decay: decay(config, item.kind, since, uses, now).max(FADED),
            confidence: item.confidence,
        };
        let product = parts.product();
        let score = match question.is_empty() {
            // Each kind has its own range of scores, so that the order of the kinds is the order of
            // the scores.
            true => (f64::from(10 - item.kind.preamble_place()) + product) / 11.0,
            false => product,
        };
        hits.push((Hit { id: item.id.clone(), kind: item.kind, score, parts }, since));
    }
    // If two have faded, the newer one is first.
    hits.sort_by(|(a, old), (b, new)| {
        b.score.total_cmp(&a.score).then(new.cmp(old)).then_with(|| a.id.cmp(&b.id))
    });
    hits.truncate(top);
    hits.into_iter().map(|(hit, _)| hit).collect()
}

/// The weight of each word of the question among these items: BM25's idf.
fn rarities<'a>(items: &[&Held], question: &'a [String]) -> BTreeMap<&'a str, f64> {
    #[allow(clippy::cast_precision_loss, reason = "counts of items, far below 2^52")]
    let all = items.len() as f64;
    let rarity = |stem: &'a String| {
        #[allow(clippy::cast_precision_loss, reason = "counts of items, far below 2^52")]
        let with =
            items.iter().filter(|held| held.stems.binary_search(stem).is_ok()).count() as f64;
        (stem.as_str(), (1.0 + (all - with + 0.5) / (with + 0.5)).ln())
    };
    question.iter().map(rarity).collect()
}

/// The sum of the weights of the words that an item shares with the question. A long text has a
/// word by chance: one of 200 words counts half.
fn relevance(held: &Held, rarity: &BTreeMap<&str, f64>) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "counts of words, far below 2^52")]
    let length = 1.0 / (1.0 + held.stems.len() as f64 / 200.0);
    let has = |stem: &str| held.stems.binary_search_by(|own| own.as_str().cmp(stem)).is_ok();
    rarity.iter().filter(|(stem, _)| has(stem)).map(|(_, weight)| weight * length).sum()
}
