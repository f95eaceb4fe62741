//! Ranking: `relevance × recency factor × confidence factor`, see README.md.

use std::cmp::Ordering;

use memhost_sdk::types::Error;
use rustc_hash::FxHashSet;

use crate::config::Config;
use crate::index::{Doc, Known};
use crate::meaning::{Meaning, Question};
use crate::store::Store;
use crate::text::Term;

/// Okapi BM25's constants, as its authors give them (Robertson and Zaragoza 2009): how soon a
/// repeated word stops counting, and how much long items are penalized.
const K1: f32 = 1.2;
const B: f32 = 0.75;
/// How many items by words and by signs are compared with a question's vector, at least.
const COMPARED: usize = 256;
/// From this number of items on, a word that most of them have tells nothing. Among fewer it may be
/// the one that the question is about.
const MANY: usize = 100;
const DAY: f64 = 86_400e6;

/// A question.
pub(crate) struct Ask<'a> {
    /// Its terms. Without terms nothing answers it.
    pub(crate) terms: Vec<Term>,
    /// Its vector.
    pub(crate) question: Option<Question>,
    /// Which places are visible, by number.
    pub(crate) seen: Vec<bool>,
    /// Members that metadata must have.
    pub(crate) members: Vec<u64>,
    /// Microseconds since 1970.
    pub(crate) now: i64,
    /// The most items in the result.
    pub(crate) top: usize,
    /// The formula's weights.
    pub(crate) config: &'a Config,
}

/// An item that answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit {
    /// Its number.
    pub(crate) doc: Doc,
    /// The product of the parts, 0 to 1.
    pub(crate) score: f32,
    /// Both parts of relevance, 0 to 1 within the result. There is no meaning if the question or
    /// the item has no vector.
    pub(crate) words: f32,
    pub(crate) meaning: Option<f32>,
    /// The cosine of its vector and the question's.
    pub(crate) cosine: Option<f32>,
    /// How much of the question the best item by words has: the sum of its words' rarities, 0 to 1.
    /// It is the same for all hits, so it changes no order.
    pub(crate) coverage: f32,
    /// The factors.
    pub(crate) relevance: f32,
    pub(crate) recency: f32,
    pub(crate) confidence: f32,
    when: i64,
}

/// Sums by item, kept between questions so that no question allocates memory.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// 0: not visited; below 0: not visible.
    sums: Vec<f32>,
    touched: Vec<Doc>,
}

impl Scratch {
    /// Whether an item that is visible had a word of the last question.
    pub(crate) fn has_words(&self) -> bool {
        self.touched.iter().any(|doc| self.sums[*doc as usize] > 0.0)
    }
}

impl Ask<'_> {
    fn admits(&self, store: &Store, doc: Doc) -> bool {
        store.index.known(doc).is_some_and(|known| {
            self.seen[known.place as usize]
                && (self.members.is_empty() || store.index.has_members(known, &self.members))
        })
    }

    /// Adds the most useful of the visible items behind what fits, up to the most of the result.
    /// None scores higher than what fits.
    pub(crate) fn fill(&self, store: &Store, fitting: &mut Vec<Hit>) {
        let room = self.top.saturating_sub(fitting.len());
        if room == 0 {
            return;
        }
        let relevance = fitting.last().map_or(1.0, |hit| hit.score);
        let taken: FxHashSet<Doc> = fitting.iter().map(|hit| hit.doc).collect();
        let docs = 0..Doc::try_from(store.index.slots()).unwrap_or(Doc::MAX);
        let mut best = Best::new(room);
        for doc in docs.filter(|doc| !taken.contains(doc) && self.admits(store, *doc)) {
            if let Some(known) = store.index.known(doc) {
                best.offer(self.hit(doc, known, 0.0, None, relevance));
            }
        }
        fitting.extend(best.sorted());
    }

    /// The best items, best first.
    ///
    /// # Errors
    /// If storage cannot be read.
    pub(crate) fn best(
        &self,
        store: &Store,
        meaning: &Meaning,
        scratch: &mut Scratch,
    ) -> Result<Vec<Hit>, Error> {
        let mut worded = self.by_words(store, scratch);
        let first = worded.iter().max_by(|a, b| a.1.total_cmp(&b.1)).copied();
        let coverage = first.map_or(1.0, |(doc, _)| self.coverage(store, doc));
        let most = first.map_or(0.0, |(_, sum)| sum);
        worded.iter_mut().for_each(|(_, sum)| *sum /= most);
        let mut best = Best::new(self.top);
        let Some(question) = &self.question else {
            for (doc, words) in worded {
                // No factor is more than 1, so items whose relevance by words is too low are
                // skipped.
                if best.takes(words)
                    && let Some(known) = store.index.known(doc)
                {
                    best.offer(Hit {
                        coverage,
                        ..self.hit(doc, known, words, None, words * coverage)
                    });
                }
            }
            return Ok(best.sorted());
        };
        let compared = COMPARED.max(self.top * 2);
        if worded.len() > compared {
            worded.select_nth_unstable_by(compared, |a, b| b.1.total_cmp(&a.1));
            worded.truncate(compared);
        }
        let near = meaning.nearest(question, compared, |doc| self.admits(store, doc));
        worded.extend(near.into_iter().map(|doc| (doc, 0.0)));
        // If an item has two entries, the one with words is kept.
        worded.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        worded.dedup_by_key(|(doc, _)| *doc);
        let mut found = Vec::with_capacity(worded.len());
        for (doc, words) in worded {
            if let Some(known) = store.index.known(doc) {
                found.push((doc, known, words, meaning.similarity(question, &known.id)?));
            }
        }
        let all = || found.iter().filter_map(|(.., similarity)| *similarity);
        let (least, most) = (all().fold(f32::MAX, f32::min), all().fold(f32::MIN, f32::max));
        let weights = &self.config.weights;
        let share = narrow(weights.words / (weights.words + weights.meaning));
        for (doc, known, words, similarity) in found {
            let meaning = similarity
                .map(|value| if most > least { (value - least) / (most - least) } else { 1.0 });
            // Items without a vector are judged by their words alone.
            let relevance =
                meaning.map_or(words, |meaning| share * words + (1.0 - share) * meaning);
            // The words' part says how much is covered; a meaning has no such measure.
            let relevance = relevance * (share * coverage + 1.0 - share);
            best.offer(Hit {
                cosine: similarity,
                coverage,
                ..self.hit(doc, known, words, meaning, relevance)
            });
        }
        Ok(best.sorted())
    }

    /// Items that have some of the terms, with their BM25 scores.
    fn by_words(&self, store: &Store, scratch: &mut Scratch) -> Vec<(Doc, f32)> {
        let index = &store.index;
        for doc in scratch.touched.drain(..) {
            scratch.sums[doc as usize] = 0.0;
        }
        scratch.sums.resize(index.slots(), 0.0);
        let average = index.average().max(1.0);
        for term in self.telling(store) {
            let weight = rarity(store, term) * (K1 + 1.0);
            for posting in index.of(term).0 {
                let doc = posting.doc();
                let sum = &mut scratch.sums[doc as usize];
                if *sum == 0.0 {
                    scratch.touched.push(doc);
                    // Before the best are chosen, so that invisible items do not displace visible
                    // ones.
                    if !self.admits(store, doc) {
                        *sum = -1.0;
                    }
                }
                if *sum >= 0.0
                    && let Some(known) = index.known(doc)
                {
                    let count = posting.count();
                    let norm = K1 * (1.0 - B + B * f32::from(known.length) / average);
                    *sum += weight * count / (count + norm);
                }
            }
        }
        let seen = scratch.touched.iter().map(|doc| (*doc, scratch.sums[*doc as usize]));
        seen.filter(|(_, sum)| *sum > 0.0).collect()
    }

    /// The share of the rarities of the terms that an item has.
    fn coverage(&self, store: &Store, doc: Doc) -> f32 {
        let (mut has, mut all) = (0.0, 0.0);
        for term in self.telling(store) {
            let rarity = rarity(store, term);
            all += rarity;
            // Postings are in the order of items.
            if store.index.of(term).0.binary_search_by_key(&doc, |posting| posting.doc()).is_ok() {
                has += rarity;
            }
        }
        if all > 0.0 { has / all } else { 1.0 }
    }

    /// The terms without those that more than half of many items have, unless no others are left.
    /// Such terms distinguish nothing, in any language.
    fn telling(&self, store: &Store) -> Vec<Term> {
        if store.index.len() < MANY {
            return self.terms.clone();
        }
        let is_common = |term: &Term| store.index.of(*term).1 as usize * 2 > store.index.len();
        let telling: Vec<Term> =
            self.terms.iter().filter(|term| !is_common(term)).copied().collect();
        let finds = telling.iter().any(|term| store.index.of(*term).1 > 0);
        if finds { telling } else { self.terms.clone() }
    }

    fn hit(
        &self,
        doc: Doc,
        known: &Known,
        words: f32,
        meaning: Option<f32>,
        relevance: f32,
    ) -> Hit {
        #[allow(clippy::cast_precision_loss, reason = "an age")]
        let days = (self.now.saturating_sub(known.when)).max(0) as f64 / DAY;
        let fresh = narrow((-days / self.config.half_life_days).exp2());
        let weights = &self.config.weights;
        let recency = 1.0 - narrow(weights.recency) * (1.0 - fresh);
        let confidence = 1.0 - narrow(weights.confidence) * (1.0 - known.confidence);
        let score = (relevance * recency * confidence).clamp(0.0, 1.0);
        Hit {
            doc,
            score,
            words,
            meaning,
            cosine: None,
            coverage: 1.0,
            relevance,
            recency,
            confidence,
            when: known.when,
        }
    }
}

/// BM25's weight of a term.
#[allow(clippy::cast_precision_loss, reason = "counts for a formula")]
fn rarity(store: &Store, term: Term) -> f32 {
    let (all, alive) = (store.index.len() as f32, store.index.of(term).1 as f32);
    (1.0 + (all - alive + 0.5) / (alive + 0.5)).ln()
}

#[allow(clippy::cast_possible_truncation, reason = "a share needs no more")]
fn narrow(share: f64) -> f32 {
    share as f32
}

/// The best so far.
struct Best {
    top: usize,
    found: Vec<Hit>,
    /// The lowest score of the best, once there are enough.
    least: f32,
}

impl Best {
    fn new(top: usize) -> Self {
        Self { top, found: Vec::new(), least: f32::MIN }
    }

    /// Whether this score could be among them.
    fn takes(&self, score: f32) -> bool {
        score >= self.least
    }

    fn offer(&mut self, hit: Hit) {
        if !self.takes(hit.score) {
            return;
        }
        self.found.push(hit);
        // Many are removed at once, so that each costs little.
        if self.found.len() >= self.top * 2 + 64 {
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        if self.found.len() > self.top {
            self.found.select_nth_unstable_by(self.top - 1, order);
            self.found.truncate(self.top);
            self.least = self.found[self.top - 1].score;
        }
    }

    fn sorted(mut self) -> Vec<Hit> {
        self.shrink();
        self.found.sort_unstable_by(order);
        self.found
    }
}

/// The higher score first; of equal scores the newer item.
fn order(a: &Hit, b: &Hit) -> Ordering {
    b.score.total_cmp(&a.score).then(b.when.cmp(&a.when)).then(a.doc.cmp(&b.doc))
}
