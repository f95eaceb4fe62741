//! Which records answer a question.
//!
//! A record's own score is BM25 over its passages. To it are added shares of what stands around the record: its
//! neighbours' scores, its session's, and whether the question names somebody in its metadata. Every part is
//! normalized to 0–1 within the result and weighted by the configuration; README.md says what each is for.

mod context;
mod score;

pub(crate) use score::Scratch;

use crate::config::Ranking;
use crate::index::{DocId, Index};
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
    /// What stands beside it.
    pub(crate) neighbours: f32,
    /// Its session.
    pub(crate) session: f32,
    /// Named in the question.
    pub(crate) names: f32,
}

impl Parts {
    fn sum(self) -> f32 {
        self.words + self.neighbours + self.session + self.names
    }
}

/// The best `top` records that `admits` lets through, best first.
pub(crate) fn rank(
    index: &Index,
    analyzer: &Analyzer,
    ranking: &Ranking,
    scratch: &mut Scratch,
    question: &str,
    top: usize,
    admits: impl Fn(DocId) -> bool,
) -> Vec<Hit> {
    let mut own = score::own(index, ranking, scratch, &analyzer.question(question), &admits);
    let order = |a: &(DocId, f32), b: &(DocId, f32)| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0));
    // A large answer needs as many to choose from.
    let candidates = CANDIDATES.max(top.saturating_mul(2));
    if own.len() > candidates {
        own.select_nth_unstable_by(candidates, order);
        own.truncate(candidates);
    }
    let Some(most) = own.iter().map(|(_, score)| *score).reduce(f32::max).filter(|most| *most > 0.0) else {
        return Vec::new();
    };
    own.iter_mut().for_each(|(_, score)| *score /= most);
    let mut found = context::around(index, ranking, &own, &admits);
    context::add_sessions(index, ranking, &mut found);
    context::add_names(index, ranking, question, &mut found);
    // The most that a record can have.
    let full = 1.0 + context::most(ranking);
    let mut hits: Vec<Hit> = found
        .into_iter()
        .map(|(doc, mut parts)| {
            for part in [&mut parts.words, &mut parts.neighbours, &mut parts.session, &mut parts.names] {
                *part /= full;
            }
            Hit { doc, score: parts.sum().clamp(0.0, 1.0), passage: scratch.passage(index, doc), parts }
        })
        .collect();
    let order = |a: &Hit, b: &Hit| b.score.total_cmp(&a.score).then_with(|| a.doc.cmp(&b.doc));
    if hits.len() > top {
        hits.select_nth_unstable_by(top, order);
        hits.truncate(top);
    }
    hits.sort_unstable_by(order);
    hits
}
