//! Which records answer a question. Parts are normalized to 0–1 within the result and added with weights; README.md
//! explains each.

use std::collections::HashMap;

use crate::config::Ranking;
use crate::index::{Doc, DocId, Index, actor};
use crate::words::{Analyzer, words};

/// A word that this share of all records has as an actor tells nobody apart.
const COMMON_ACTOR: f32 = 0.9;

/// How many passages are looked at more closely: what shares only a common word with the question is not among them.
const CANDIDATES: usize = 4_096;

/// A record that answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit {
    /// Which.
    pub(crate) doc: DocId,
    /// 0 to 1, the best of the result near 1.
    pub(crate) score: f32,
    /// Which of its passages fits best.
    pub(crate) passage: u32,
}

/// What a document has so far.
#[derive(Clone, Copy, Default)]
struct Found {
    best: f32,
    passage: u32,
    rest: f32,
}

/// The best `top` records that `admits` lets through.
pub(crate) fn rank(
    index: &Index,
    analyzer: &Analyzer,
    ranking: &Ranking,
    question: &str,
    top: usize,
    admits: impl Fn(&Doc) -> bool,
) -> Vec<Hit> {
    let found = bm25(index, analyzer, ranking, question, admits);
    let Some(most) = found.values().map(|found| found.best + found.rest).reduce(f32::max).filter(|most| *most > 0.0)
    else {
        return Vec::new();
    };
    let base: HashMap<DocId, f32> = found.iter().map(|(doc, found)| (*doc, (found.best + found.rest) / most)).collect();
    let mut scores = base.clone();
    add_context(index, ranking, &base, &mut scores);
    add_actors(index, ranking, question, &base, &mut scores);
    let mut hits: Vec<Hit> = scores
        .into_iter()
        .map(|(doc, score)| {
            let passage = found.get(&doc).map_or(0, |found| found.passage);
            Hit { doc, score, passage }
        })
        .collect();
    let order = |a: &Hit, b: &Hit| b.score.total_cmp(&a.score).then_with(|| a.doc.cmp(&b.doc));
    if hits.len() > top {
        hits.select_nth_unstable_by(top, order);
        hits.truncate(top);
    }
    hits.sort_unstable_by(order);
    // The weights add up to the most that a record can have.
    let full = 1.0 + 2.0 * ranking.neighbours + ranking.session + ranking.actor;
    hits.iter_mut().for_each(|hit| hit.score = (hit.score / full).clamp(0.0, 1.0));
    hits
}

/// Okapi BM25 (Robertson and Zaragoza 2009) over passages; a record has its best passage's score and a tenth of the
/// others'.
fn bm25(
    index: &Index,
    analyzer: &Analyzer,
    ranking: &Ranking,
    question: &str,
    admits: impl Fn(&Doc) -> bool,
) -> HashMap<DocId, Found> {
    let (slots, used) = index.passages();
    #[allow(clippy::cast_precision_loss, reason = "counts for a formula")]
    let (used, average) = (used as f32, index.total_words() as f32 / (used.max(1)) as f32);
    let mut scores = vec![0.0_f32; slots];
    let mut touched: Vec<u32> = Vec::new();
    for term in analyzer.question(question) {
        let postings = index.postings(&term);
        #[allow(clippy::cast_precision_loss, reason = "counts for a formula")]
        let frequency = postings.len() as f32;
        let idf = (1.0 + (used - frequency + 0.5) / (frequency + 0.5)).ln();
        for posting in postings {
            let passage = posting >> 8;
            let Some((number, length)) = index.passage(passage) else { continue };
            #[allow(clippy::cast_precision_loss, reason = "a byte")]
            let count = (posting & 0xff) as f32 / 4.0;
            let norm = 1.0 - ranking.b + ranking.b * f32::from(length) / average.max(1.0);
            let score = idf * count * (ranking.k1 + 1.0) / (count + ranking.k1 * norm);
            let sum = &mut scores[passage as usize];
            if *sum == 0.0 {
                // Before the cut to the candidates: what may not be seen must not push out what may.
                if !index.doc(number).is_some_and(&admits) {
                    continue;
                }
                touched.push(passage);
            }
            *sum += score;
        }
    }
    if touched.len() > CANDIDATES {
        let order = |a: &u32, b: &u32| scores[*b as usize].total_cmp(&scores[*a as usize]);
        touched.select_nth_unstable_by(CANDIDATES, order);
        touched.truncate(CANDIDATES);
    }
    let mut found: HashMap<DocId, Found> = HashMap::with_capacity(touched.len());
    for passage in touched {
        let Some((number, _)) = index.passage(passage) else { continue };
        let score = scores[passage as usize];
        match found.get_mut(&number) {
            Some(found) if score > found.best => {
                found.rest += found.best * 0.1;
                (found.best, found.passage) = (score, passage);
            }
            Some(found) => found.rest += score * 0.1,
            None => drop(found.insert(number, Found { best: score, passage, rest: 0.0 })),
        }
    }
    found
}

/// What stands beside a hit belongs to it: an answer follows its question. And a session that is about something is
/// about it in more than one place.
fn add_context(index: &Index, ranking: &Ranking, base: &HashMap<DocId, f32>, scores: &mut HashMap<DocId, f32>) {
    let mut groups: HashMap<&str, f32> = HashMap::new();
    for (number, score) in base {
        if let Some(group) = index.doc(*number).and_then(|doc| doc.group.as_deref()) {
            *groups.entry(group).or_default() += score * score;
        }
    }
    let best_group = groups.values().copied().fold(0.0, f32::max).sqrt();
    for (name, sum) in groups {
        let Some(members) = index.group(name) else { continue };
        let members: Vec<DocId> = members.values().copied().collect();
        let group_score = if best_group > 0.0 { sum.sqrt() / best_group } else { 0.0 };
        let at = |position: Option<usize>| {
            position.and_then(|position| members.get(position)).and_then(|doc| base.get(doc)).copied().unwrap_or(0.0)
        };
        for (position, member) in members.iter().enumerate() {
            let beside = at(position.checked_sub(1)) + at(Some(position + 1));
            let further = at(position.checked_sub(2)) + at(Some(position + 2));
            let near = ranking.neighbours * (beside + 0.5 * further);
            // A record that has nothing of the question itself and no neighbour that has is no hit.
            if let Some(score) = scores.get_mut(member) {
                *score += near + ranking.session * group_score;
            }
        }
    }
}

/// A question that names somebody is about what they said or did.
fn add_actors(
    index: &Index,
    ranking: &Ranking,
    question: &str,
    base: &HashMap<DocId, f32>,
    scores: &mut HashMap<DocId, f32>,
) {
    #[allow(clippy::cast_precision_loss, reason = "counts for a share")]
    let share = |count: usize| count as f32 / index.len().max(1) as f32;
    for (_, word) in words(question) {
        let postings = index.postings(&actor(&word));
        if postings.is_empty() || share(postings.len()) > COMMON_ACTOR {
            continue;
        }
        for posting in postings {
            if let Some((number, _)) = index.passage(posting >> 8)
                && base.contains_key(&number)
                && let Some(score) = scores.get_mut(&number)
            {
                *score += ranking.actor;
            }
        }
    }
}
