//! Ranking: which records answer a question.
//!
//! A record's own score is BM25 over its passages and over the whole record, and, if the binding
//! has a model, the similarity of its passages' vectors to the question's, of a short record mixed
//! with that of the records beside it. Shares of the scores of its neighbours and of its session
//! are added, and a share for a name in its metadata that the question contains. Every part is
//! normalized to 0–1 within the result and weighted by the configuration. README.md explains the
//! parts.

mod beside;
mod closer;
mod context;
mod fuse;
mod score;

pub(crate) use score::Scratch;

use crate::config::Ranking;
use crate::index::{DocId, Index};
use crate::meaning::Nearest;
use crate::text::{Analyzer, Term, words};

/// How many records are ranked closely. Records that share only a common word with the question are
/// not among them.
const CANDIDATES: usize = 256;

/// A record that answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit {
    /// Its number.
    pub(crate) doc: DocId,
    /// 0 to 1, comparable within one result.
    pub(crate) score: f32,
    /// Its best passage.
    pub(crate) passage: usize,
    /// The parts of the score.
    pub(crate) parts: Parts,
}

/// The weighted parts of a score; they add up to it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Parts {
    /// The record's own words.
    pub(crate) words: f32,
    /// The record's meaning.
    pub(crate) meaning: f32,
    /// Its neighbours.
    pub(crate) neighbours: f32,
    /// Its session.
    pub(crate) session: f32,
    /// A name in its metadata that the question contains.
    pub(crate) names: f32,
}

impl Parts {
    fn sum(self) -> f32 {
        self.own() + self.neighbours + self.session + self.names
    }

    /// The score without neighbours, session and names.
    fn own(self) -> f32 {
        self.words + self.meaning
    }
}

/// A question.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question<'a> {
    /// Its terms.
    pub(crate) text: &'a str,
    /// The similar passages; empty if the binding has no model.
    pub(crate) nearest: &'a Nearest,
    /// How many records are wanted.
    pub(crate) top: usize,
}

/// The terms whose lists a question needs.
pub(crate) fn terms(analyzer: &Analyzer, question: &str) -> Vec<Term> {
    let mut terms = analyzer.question(question);
    terms.extend(words(question).map(|word| Analyzer::name(&word.text)));
    terms
}

/// The best records that `admits` accepts, best first.
pub(crate) fn rank(
    index: &Index,
    analyzer: &Analyzer,
    ranking: &Ranking,
    scratch: &mut Scratch,
    question: Question<'_>,
    admits: impl Fn(DocId) -> bool,
) -> Vec<Hit> {
    let terms = analyzer.question(question.text);
    // A large answer needs more candidates.
    let candidates = CANDIDATES.max(question.top.saturating_mul(2));
    let mut words = score::own(index, ranking, scratch, &terms, candidates, &admits);
    // A common word is in most of the records. Records that have only such a word are left out.
    fuse::keep_best(&mut words, candidates, |score| *score);
    closer::look(index, ranking, scratch, &analyzer.in_order(question.text), &mut words);
    let nearest = beside::mixed(index, question.nearest, &admits);
    let own = fuse::own(ranking, &words, &nearest, candidates);
    let mut around = std::mem::take(&mut scratch.around);
    around.neighbours(index, ranking, &own, &admits);
    around.sessions(index, ranking);
    around.names(index, ranking, question.text);
    let mut best: Vec<(f32, DocId, Parts)> =
        around.found().iter().map(|(doc, parts)| (parts.sum(), *doc, *parts)).collect();
    scratch.around = around;
    let order = |a: &(f32, DocId, Parts), b: &(f32, DocId, Parts)| {
        b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1))
    };
    if best.len() > question.top {
        best.select_nth_unstable_by(question.top, order);
        best.truncate(question.top);
    }
    best.sort_unstable_by(order);
    // The largest possible score.
    let full = 1.0 + context::most(ranking);
    let hit = |(_, doc, mut parts): (f32, DocId, Parts)| {
        for part in [
            &mut parts.words,
            &mut parts.meaning,
            &mut parts.neighbours,
            &mut parts.session,
            &mut parts.names,
        ] {
            *part /= full;
        }
        let near =
            own.binary_search_by_key(&doc, |(doc, _)| *doc).ok().and_then(|at| own[at].1.passage);
        let passage = near.unwrap_or_else(|| scratch.passage(index, doc));
        Hit { doc, score: parts.sum().clamp(0.0, 1.0), passage, parts }
    };
    best.into_iter().map(hit).collect()
}
