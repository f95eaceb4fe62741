//! The parts of a score that come from other records and from names.

use std::collections::HashMap;

use super::Parts;
use super::fuse::Own;
use crate::config::Ranking;
use crate::index::{ByHash, DocId, Index};
use crate::text::{Analyzer, words};

/// How many neighbours count on each side, and the factor for each step of distance.
const REACH: [f32; 3] = [1.0, 0.5, 0.25];
/// The record after a hit answers it more often than the record before it.
const BEFORE: f32 = 0.8;
/// A name in more than this share of all records does not count.
const COMMON_NAME: f32 = 0.9;

/// The most that a record gets from its neighbours.
pub(super) fn most(ranking: &Ranking) -> f32 {
    (1.0 + BEFORE) * REACH.iter().sum::<f32>() * ranking.neighbours + ranking.session + ranking.names
}

/// Adds to each record shares of its neighbours' scores: an answer follows its question, and a pronoun refers to the
/// record before.
pub(super) fn around(
    index: &Index,
    ranking: &Ranking,
    own: &[(DocId, Own)],
    admits: &impl Fn(DocId) -> bool,
) -> HashMap<DocId, Parts> {
    let mut found: HashMap<DocId, Parts> = HashMap::with_capacity(own.len() * 2);
    for (doc, own) in own {
        let parts = found.entry(*doc).or_default();
        (parts.words, parts.meaning) = (own.words, own.meaning);
    }
    if ranking.neighbours == 0.0 {
        return found;
    }
    for (doc, own) in own {
        let score = own.words + own.meaning;
        let (mut before, mut behind) = (Some(*doc), Some(*doc));
        for share in REACH {
            before = before.and_then(|doc| index.sessions.before(doc));
            behind = behind.and_then(|doc| index.sessions.behind(doc));
            for (beside, side) in [(before, BEFORE), (behind, 1.0)] {
                let gain = ranking.neighbours * share * side * score;
                if let Some(beside) = beside.filter(|beside| admits(*beside)) {
                    found.entry(beside).or_default().neighbours += gain;
                }
            }
        }
    }
    found
}

/// The scores of sessions: a session about a subject has several records about it. A record without a session is a
/// session of its own.
pub(super) fn add_sessions(index: &Index, ranking: &Ranking, found: &mut HashMap<DocId, Parts>) {
    let session = |doc: DocId| index.doc(doc).map(|doc| doc.session).filter(|session| *session != 0);
    let mut sums: ByHash<f32> = ByHash::default();
    let mut best = 0.0_f32;
    for (doc, parts) in found.iter() {
        let square = parts.own() * parts.own();
        match session(*doc) {
            Some(session) => {
                let sum = sums.entry(session).or_default();
                *sum += square;
                best = best.max(*sum);
            }
            None => best = best.max(square),
        }
    }
    if best == 0.0 {
        return;
    }
    for (doc, parts) in found {
        let sum = session(*doc).and_then(|session| sums.get(&session)).copied().unwrap_or(parts.own() * parts.own());
        parts.session = ranking.session * (sum / best).sqrt();
    }
}

/// The share for names: a question that names a person is about what that person said or did.
pub(super) fn add_names(index: &Index, ranking: &Ranking, question: &str, found: &mut HashMap<DocId, Parts>) {
    for (_, word) in words(question) {
        let (postings, alive) = index.postings.of(Analyzer::name(&word));
        #[allow(clippy::cast_precision_loss, reason = "counts for a share")]
        let share = alive as f32 / index.len().max(1) as f32;
        if share > COMMON_NAME {
            continue;
        }
        for posting in postings {
            if let Some((doc, _)) = index.postings.passage(posting.passage())
                && let Some(parts) = found.get_mut(&doc)
            {
                parts.names = ranking.names;
            }
        }
    }
}
