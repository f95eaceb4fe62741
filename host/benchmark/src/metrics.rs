//! The retrieval measures: recall@k, hit@k, nDCG@10 with binary relevance, and the reciprocal rank.
//! Each is averaged over questions.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

/// The averages over a set of questions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Score {
    /// How many questions.
    pub questions: usize,
    /// The share of the evidence among the first 5.
    #[serde(rename = "recall@5")]
    pub recall_5: f64,
    /// The share of the evidence among the first 10.
    #[serde(rename = "recall@10")]
    pub recall_10: f64,
    /// The share of the evidence among the first 20.
    #[serde(rename = "recall@20")]
    pub recall_20: f64,
    /// How often some evidence is among the first 10.
    #[serde(rename = "hit@10")]
    pub hit_10: f64,
    /// Discounted gain of the first 10, over the best possible.
    #[serde(rename = "nDCG@10")]
    pub ndcg_10: f64,
    /// One over the rank of the first evidence, 0 where there is none.
    #[serde(rename = "MRR")]
    pub mrr: f64,
}

/// The kinds of questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the benchmark's names")]
pub enum Category {
    MultiHop,
    Temporal,
    OpenDomain,
    SingleHop,
    Other,
}

impl Category {
    /// From the benchmark's number.
    pub fn new(number: u8) -> Self {
        match number {
            1 => Self::MultiHop,
            2 => Self::Temporal,
            3 => Self::OpenDomain,
            4 => Self::SingleHop,
            _ => Self::Other,
        }
    }

    /// The name in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MultiHop => "multi-hop",
            Self::Temporal => "temporal",
            Self::OpenDomain => "open-domain",
            Self::SingleHop => "single-hop",
            Self::Other => "other",
        }
    }
}

/// How long queries took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Latency {
    /// The 50th percentile (p50), in milliseconds.
    pub p50_ms: f64,
    /// The 99th percentile (p99), in milliseconds.
    pub p99_ms: f64,
}

impl Latency {
    /// The latency of these durations, in any order.
    pub fn of(mut durations: Vec<Duration>) -> Self {
        durations.sort_unstable();
        let at = |share: usize| {
            let index = (durations.len() * share / 100).min(durations.len().saturating_sub(1));
            durations.get(index).map_or(0.0, |duration| duration.as_secs_f64() * 1e3)
        };
        Self { p50_ms: at(50), p99_ms: at(99) }
    }
}

/// The scores of a whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scores {
    /// Scores over all questions.
    pub overall: Score,
    /// Scores by kind of question.
    pub categories: BTreeMap<Category, Score>,
}

/// Gathers scores question by question.
#[derive(Debug, Default)]
pub(super) struct Tally {
    overall: Score,
    categories: BTreeMap<Category, Score>,
}

impl Tally {
    pub(super) fn add(&mut self, category: Category, evidence: &[String], ranked: &[String]) {
        let score = question(evidence, ranked);
        for sum in [&mut self.overall, self.categories.entry(category).or_default()] {
            sum.questions += 1;
            sum.recall_5 += score.recall_5;
            sum.recall_10 += score.recall_10;
            sum.recall_20 += score.recall_20;
            sum.hit_10 += score.hit_10;
            sum.ndcg_10 += score.ndcg_10;
            sum.mrr += score.mrr;
        }
    }

    pub(super) fn averages(self) -> Scores {
        Scores {
            overall: average(self.overall),
            categories: self
                .categories
                .into_iter()
                .map(|(category, sum)| (category, average(sum)))
                .collect(),
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts of questions and ranks are small")]
fn average(sum: Score) -> Score {
    let n = sum.questions.max(1) as f64;
    Score {
        questions: sum.questions,
        recall_5: sum.recall_5 / n,
        recall_10: sum.recall_10 / n,
        recall_20: sum.recall_20 / n,
        hit_10: sum.hit_10 / n,
        ndcg_10: sum.ndcg_10 / n,
        mrr: sum.mrr / n,
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts of questions and ranks are small")]
fn question(evidence: &[String], ranked: &[String]) -> Score {
    let found = |k: usize| ranked.iter().take(k).filter(|id| evidence.contains(id)).count() as f64;
    let relevant = evidence.len() as f64;
    let discount = |rank: usize| 1.0 / ((rank + 2) as f64).log2();
    let gain: f64 = ranked
        .iter()
        .take(10)
        .enumerate()
        .filter(|(_, id)| evidence.contains(id))
        .map(|(i, _)| discount(i))
        .sum();
    let ideal: f64 = (0..evidence.len().min(10)).map(discount).sum();
    let first = ranked.iter().position(|id| evidence.contains(id));
    Score {
        questions: 1,
        recall_5: found(5) / relevant,
        recall_10: found(10) / relevant,
        recall_20: found(20) / relevant,
        hit_10: f64::from(found(10) > 0.0),
        ndcg_10: gain / ideal,
        mrr: first.map_or(0.0, |rank| 1.0 / (rank + 1) as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_measures_are_those_of_the_textbook() {
        let score = question(&ids("a b"), &ids("x a y z w b"));
        assert!((score.recall_5 - 0.5).abs() < 1e-12);
        assert!((score.recall_10 - 1.0).abs() < 1e-12);
        assert!((score.mrr - 0.5).abs() < 1e-12);
        let expected = (1.0 / 3_f64.log2() + 1.0 / 7_f64.log2()) / (1.0 + 1.0 / 3_f64.log2());
        assert!((score.ndcg_10 - expected).abs() < 1e-12, "{}", score.ndcg_10);
        let nothing = question(&ids("a"), &ids("x y"));
        assert_eq!((nothing.hit_10, nothing.mrr, nothing.ndcg_10), (0.0, 0.0, 0.0));
    }

    #[test]
    fn averages_are_over_questions() {
        let mut tally = Tally::default();
        tally.add(Category::Temporal, &ids("a"), &ids("a"));
        tally.add(Category::SingleHop, &ids("a"), &ids("b"));
        let scores = tally.averages();
        assert!((scores.overall.recall_10 - 0.5).abs() < 1e-12);
        assert!((scores.categories[&Category::Temporal].recall_10 - 1.0).abs() < 1e-12);
    }
}
