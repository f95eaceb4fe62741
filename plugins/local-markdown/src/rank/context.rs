//! The parts of a score that come from other records and from names.

use super::Parts;
use super::fuse::Own;
use crate::config::Ranking;
use crate::index::{ByHash, DocId, Index, is_issue, stands_alone};
use crate::text::{Analyzer, words};

/// How many neighbours count on each side, and the factor for each step of distance.
const REACH: [f32; 3] = [1.0, 0.5, 0.25];
/// The record after a hit answers it more often than the record before it.
const BEFORE: f32 = 0.8;
/// What neighbours count in a document and in an issue. A section or a comment answers by itself, a
/// turn of a conversation often does not.
const ALONE: f32 = 0.25;
/// A name in more than this share of all records does not count.
const COMMON_NAME: f32 = 0.9;
/// About how many postings can be read in the time of one search among many of them.
const SEARCH_STEPS: usize = 16;

/// The most that a record gets from its neighbours.
pub(super) fn most(ranking: &Ranking) -> f32 {
    (1.0 + BEFORE) * REACH.iter().sum::<f32>() * ranking.neighbours
        + ranking.session
        + ranking.names
}

/// The parts of the scores of the records that a question may lead to. The memory is used again.
#[derive(Debug, Default)]
pub(crate) struct Around {
    /// By record: one more than its place among those found, or 0.
    places: Vec<u32>,
    found: Vec<(DocId, Parts)>,
}

impl Around {
    fn clear(&mut self, slots: usize) {
        for (doc, _) in self.found.drain(..) {
            self.places[doc as usize] = 0;
        }
        self.places.resize(slots, 0);
    }

    fn get_mut(&mut self, doc: DocId) -> Option<&mut Parts> {
        let place = (*self.places.get(doc as usize)? as usize).checked_sub(1)?;
        Some(&mut self.found[place].1)
    }

    fn enter(&mut self, doc: DocId) -> &mut Parts {
        let place = &mut self.places[doc as usize];
        if *place == 0 {
            self.found.push((doc, Parts::default()));
            *place = u32::try_from(self.found.len()).unwrap_or(u32::MAX);
        }
        &mut self.found[*place as usize - 1].1
    }

    /// The records with their parts, in no order.
    pub(super) fn found(&self) -> &[(DocId, Parts)] {
        &self.found
    }

    /// Adds to each record shares of its neighbours' scores: an answer follows its question, and a
    /// pronoun refers to the record before. A weak hit says little of the records beside it, so it
    /// gives by the square of its score; and a record gets less, the more of the question it has
    /// itself: it is found without its neighbours.
    pub(super) fn neighbours(
        &mut self,
        index: &Index,
        ranking: &Ranking,
        own: &[(DocId, Own)],
        admits: &impl Fn(DocId) -> bool,
    ) {
        self.clear(index.slots());
        for (doc, own) in own {
            let parts = self.enter(*doc);
            (parts.words, parts.meaning) = (own.words, own.meaning);
        }
        if ranking.neighbours == 0.0 {
            return;
        }
        for (doc, own) in own {
            let score = (own.words + own.meaning).powi(2);
            let (mut before, mut behind) = (Some(*doc), Some(*doc));
            for share in REACH {
                before = before.and_then(|doc| index.sessions.before(doc));
                behind = behind.and_then(|doc| index.sessions.behind(doc));
                for (beside, side) in [(before, BEFORE), (behind, 1.0)] {
                    let gain = ranking.neighbours * share * side * score;
                    if let Some(beside) = beside.filter(|beside| admits(*beside)) {
                        let share = index.sessions.share(beside);
                        let kind =
                            if stands_alone(index.sessions.of(beside)) { ALONE } else { 1.0 };
                        self.enter(beside).neighbours += gain * share * kind;
                    }
                }
            }
        }
        for (_, parts) in &mut self.found {
            parts.neighbours *= (1.0 - parts.own()).max(0.0);
        }
    }

    /// Adds the scores of sessions: a session about a subject has several records about it. A
    /// record without a session is a session of its own. That somebody wrote many comments says
    /// little of what each of them is about.
    pub(super) fn sessions(&mut self, index: &Index, ranking: &Ranking) {
        let mut sums: ByHash<f32> = ByHash::default();
        let mut best = 0.0_f32;
        for (doc, parts) in &self.found {
            let square = parts.own() * parts.own();
            let sum = match index.sessions.of(*doc) {
                0 => square,
                _ if square == 0.0 => continue,
                session => {
                    let sum = sums.entry(session).or_default();
                    *sum += square;
                    *sum
                }
            };
            best = best.max(sum);
        }
        if best == 0.0 {
            return;
        }
        for (doc, parts) in &mut self.found {
            let sum = match index.sessions.of(*doc) {
                0 => parts.own() * parts.own(),
                session => sums.get(&session).copied().unwrap_or(0.0),
            };
            // A long record counts as a session of its own, by the rest of the share.
            let kind = if is_issue(index.sessions.of(*doc)) { ALONE } else { 1.0 };
            let (alone, share) = (parts.own(), index.sessions.share(*doc) * kind);
            parts.session = ranking.session * ((sum / best).sqrt() * share + alone * (1.0 - share));
        }
    }

    /// Adds the share for names: a question that names a person is about what that person said or
    /// did.
    pub(super) fn names(&mut self, index: &Index, ranking: &Ranking, question: &str) {
        if ranking.names == 0.0 {
            return;
        }
        for word in words(question) {
            let (postings, alive) = index.postings.of(Analyzer::name(&word.text));
            #[allow(clippy::cast_precision_loss, reason = "counts for a share")]
            let share = alive as f32 / index.len().max(1) as f32;
            if share > COMMON_NAME {
                continue;
            }
            if postings.len() <= self.found.len() * SEARCH_STEPS {
                for posting in postings {
                    if let Some((doc, _)) = index.postings.passage(posting.passage())
                        && let Some(parts) = self.get_mut(doc)
                    {
                        parts.names = ranking.names;
                    }
                }
                continue;
            }
            // Metadata belong to the first passage, and postings are in the order of passages.
            for (doc, parts) in &mut self.found {
                let first = index.doc(*doc).map(|doc| doc.first_passage as usize);
                if first.is_some_and(|first| {
                    postings.binary_search_by_key(&first, |one| one.passage()).is_ok()
                }) {
                    parts.names = ranking.names;
                }
            }
        }
    }
}
