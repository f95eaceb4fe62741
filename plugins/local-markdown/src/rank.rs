//! Which records answer a question.
//!
//! A record's own score is BM25 over its passages and, where the binding has a model, how near they are to the question
//! in meaning. To it are added shares of what stands around the record: its neighbours' scores, its session's, and
//! whether the question names somebody in its metadata. Every part is normalized to 0–1 within the result and weighted
//! by the configuration; README.md says what each is for.

mod context;
mod fuse;
mod score;

pub(crate) use score::Scratch;

use crate::config::Ranking;
use crate::index::{DocId, Index};
use crate::meaning::Nearest;
use crate::text::Analyzer;

/// How many records are looked at more closely. What shares only a common word with the question is not among them.
const CANDIDATES: usize = 2_048;

/// A record that answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit {
    /// Which.
    pub(crate) doc: DocId,
    /// 0 to 1, comparable within one result.
    pub(crate) score: f32,
    /// Which of its passages fits best.
    pub(crate) passage: usize,
    /// Where the score comes from.
    pub(crate) parts: Parts,
}

/// The weighted parts of a score; they add up to it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Parts {
    /// The record's own words.
    pub(crate) words: f32,
    /// What the record means.
    pub(crate) meaning: f32,
    /// What stands beside it.
    pub(crate) neighbours: f32,
    /// Its session.
    pub(crate) session: f32,
    /// Named in the question.
    pub(crate) names: f32,
}

impl Parts {
    fn sum(self) -> f32 {
        self.own() + self.neighbours + self.session + self.names
    }

    /// What it has without its surroundings.
    fn own(self) -> f32 {
        self.words + self.meaning
    }
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    /// In words.
    pub(crate) text: &'a str,
    /// What is near to it in meaning; empty where the binding has no model.
    pub(crate) nearest: &'a Nearest,
    /// How many records are wanted.
    pub(crate) top: usize,
}

/// The best records that `admits` lets through, best first.
pub(crate) fn rank(
    index: &Index,
    analyzer: &Analyzer,
    ranking: &Ranking,
    scratch: &mut Scratch,
    question: Question<'_>,
    admits: impl Fn(DocId) -> bool,
) -> Vec<Hit> {
    let terms = analyzer.question(question.text);
    let words = score::own(index, ranking, scratch, &terms, &admits);
    let whole = score::whole(index, &terms);
    // A large answer needs as many to choose from.
    let candidates = CANDIDATES.max(question.top.saturating_mul(2));
    let own = fuse::own(ranking, words, whole, question.nearest, candidates);
    let mut found = context::around(index, ranking, &own, &admits);
    context::add_sessions(index, ranking, &mut found);
    context::add_names(index, ranking, question.text, &mut found);
    // The most that a record can have.
    let full = 1.0 + context::most(ranking);
    let mut hits: Vec<Hit> = found
        .into_iter()
        .map(|(doc, mut parts)| {
            for part in
                [&mut parts.words, &mut parts.meaning, &mut parts.neighbours, &mut parts.session, &mut parts.names]
            {
                *part /= full;
            }
            let near = own.binary_search_by_key(&doc, |(doc, _)| *doc).ok().and_then(|at| own[at].1.passage);
            let passage = near.unwrap_or_else(|| scratch.passage(index, doc));
            Hit { doc, score: parts.sum().clamp(0.0, 1.0), passage, parts }
        })
        .collect();
    let order = |a: &Hit, b: &Hit| b.score.total_cmp(&a.score).then_with(|| a.doc.cmp(&b.doc));
    if hits.len() > question.top {
        hits.select_nth_unstable_by(question.top, order);
        hits.truncate(question.top);
    }
    hits.sort_unstable_by(order);
    hits
}
