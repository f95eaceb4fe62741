//! The meaning of a short record is also that of the records beside it in its session. A turn of
//! ten words says little without the one that it answers, and so does its vector. The similarities
//! are mixed for each question, so no vector holds anything of another record, and a record that
//! the question may not see counts nothing.

use crate::index::{DocId, Index, stands_alone};
use crate::meaning::{Near, Nearest};

/// How much of a short record's similarity is that of the records beside it (decision 0081).
const SHARE: f32 = 0.5;
/// Up to so many words, half a passage, a record is short. A passage or more says by itself what it
/// is about.
const SHORT: f32 = 30.0;
const PASSAGE: f32 = 60.0;
/// Neighbours further apart than this, in microseconds, do not count: entries of a log on different
/// days have different subjects. Sections of a document and comments of an issue have no such
/// limit.
const APART: u64 = 60 * 60 * 1_000_000;

/// The nearest records, with each short one's similarity mixed with that of the record before it
/// and the one after it.
pub(super) fn mixed(index: &Index, nearest: &Nearest, admits: &impl Fn(DocId) -> bool) -> Nearest {
    // What has no vector yet, or was not compared because many others are more similar, is as
    // similar as any. Without a model there is nothing to mix.
    let mut own = vec![nearest.usual; if nearest.records.is_empty() { 0 } else { index.slots() }];
    for near in &nearest.records {
        own[near.doc as usize] = near.cosine;
    }
    let mix = |near: &Near| {
        let share = SHARE * shortness(index, near.doc);
        if share == 0.0 {
            return *near;
        }
        let beside = [index.sessions.before(near.doc), index.sessions.behind(near.doc)];
        let (mut sum, mut count) = (0.0, 0.0);
        for doc in beside
            .into_iter()
            .flatten()
            .filter(|doc| admits(*doc) && is_near(index, near.doc, *doc))
        {
            sum += own.get(doc as usize).copied().unwrap_or(nearest.usual);
            count += 1.0;
        }
        if count == 0.0 {
            return *near;
        }
        Near { cosine: near.cosine * (1.0 - share) + share * sum / count, ..*near }
    };
    Nearest { records: nearest.records.iter().map(mix).collect(), ..*nearest }
}

#[allow(clippy::cast_precision_loss, reason = "a count for a share")]
fn shortness(index: &Index, doc: DocId) -> f32 {
    ((PASSAGE - index.words_of(doc) as f32) / (PASSAGE - SHORT)).clamp(0.0, 1.0)
}

fn is_near(index: &Index, a: DocId, b: DocId) -> bool {
    let when = |doc| index.doc(doc).map(|doc| doc.when);
    let is_soon = when(a).zip(when(b)).is_some_and(|(a, b)| a.abs_diff(b) <= APART);
    is_soon || stands_alone(index.sessions.of(a))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Language;
    use crate::files::Stamp;
    use crate::index::Entry;
    use crate::record::Record;
    use crate::text::Analyzer;

    /// Records of so many words each, a second apart: all of one session, if there is one, in their
    /// order.
    fn index(session: Option<&str>, words: &[usize]) -> Index {
        filled(words, |record, number| {
            record.front.created_at = Some(format!("2026-01-01T00:00:{number:02}Z"));
            record
                .front
                .scope
                .extend(session.map(|session| ("sessionKey".to_owned(), session.into())));
        })
    }

    fn filled(words: &[usize], fill: impl Fn(&mut Record, usize)) -> Index {
        let analyzer = Analyzer::new(Language::English);
        let mut index = Index::default();
        for (number, words) in words.iter().enumerate() {
            let mut record = Record { text: "word ".repeat(*words), ..Record::default() };
            fill(&mut record, number);
            index
                .add(Entry::of(
                    &analyzer,
                    number.to_string(),
                    number.to_string(),
                    Stamp::default(),
                    &record,
                ))
                .unwrap();
        }
        index
    }

    fn cosines(index: &Index, own: &[(DocId, f32)], admits: impl Fn(DocId) -> bool) -> Vec<f32> {
        let records = own
            .iter()
            .map(|(doc, cosine)| Near { doc: *doc, passage: 1, cosine: *cosine })
            .collect();
        let mixed = mixed(index, &Nearest { records, usual: 0.1, chance: 0.2 }, &admits);
        assert_eq!((mixed.usual, mixed.chance), (0.1, 0.2));
        assert!(
            mixed
                .records
                .iter()
                .map(|near| (near.doc, near.passage))
                .eq(own.iter().map(|(doc, _)| (*doc, 1)))
        );
        mixed.records.iter().map(|near| (near.cosine * 1_000.0).round() / 1_000.0).collect()
    }

    #[test]
    fn a_turn_is_about_what_the_turns_beside_it_are_about() {
        let own = [(0, 0.8), (1, 0.2), (2, 0.4), (3, 0.2)];
        let rest = 1.0 - SHARE;
        let wanted = [
            0.8 * rest + 0.2 * SHARE,
            0.2 * rest + 0.6 * SHARE,
            0.4 * rest + 0.2 * SHARE,
            0.2 * rest + 0.4 * SHARE,
        ];
        let wanted = wanted.map(|cosine| (cosine * 1_000.0_f32).round() / 1_000.0);
        assert_eq!(cosines(&index(Some("talk"), &[9; 4]), &own, |_| true), wanted);
        let alone = own.map(|(_, cosine)| cosine);
        assert_eq!(cosines(&index(None, &[9; 4]), &own, |_| true), alone, "of no session");
    }

    #[test]
    fn a_long_record_says_by_itself_what_it_is_about() {
        let found = cosines(
            &index(Some("talk"), &[9, 60, 9, 45]),
            &[(0, 0.8), (1, 0.2), (2, 0.8), (3, 0.2)],
            |_| true,
        );
        let half = 0.2 * (1.0 - SHARE / 2.0) + 0.8 * SHARE / 2.0;
        assert_eq!(
            (found[1], found[3]),
            (0.2, (half * 1_000.0_f32).round() / 1_000.0),
            "{found:?}"
        );
        assert!(found[0] < 0.8 - 0.5 * SHARE, "{found:?}");
    }

    #[test]
    fn a_record_that_a_question_may_not_see_counts_nothing() {
        let index = index(Some("talk"), &[9; 3]);
        assert_eq!(cosines(&index, &[(0, 0.5), (2, 0.7)], |doc| doc != 1), [0.5, 0.7]);
    }

    #[test]
    fn a_record_that_was_not_compared_is_as_similar_as_any() {
        let index = index(Some("talk"), &[9; 2]);
        assert_eq!(cosines(&index, &[(0, 0.5)], |_| true), [0.5 * (1.0 - SHARE) + 0.1 * SHARE]);
    }

    #[test]
    fn what_is_hours_apart_is_one_exchange_in_documents_and_issues_alone() {
        let own = [(0, 0.5), (1, 0.7)];
        let mixed = [0.5, 0.7].map(|cosine| cosine * (1.0 - SHARE) + (1.2 - cosine) * SHARE);
        let day = |record: &mut Record, number: usize| {
            record.front.created_at = Some(format!("2026-01-{:02}T00:00:00Z", number + 1));
        };
        let log = filled(&[9; 2], |record, number| {
            day(record, number);
            record.front.scope.insert("sessionKey".to_owned(), "log".into());
        });
        assert_eq!(cosines(&log, &own, |_| true), [0.5, 0.7]);
        let issue = filled(&[9; 2], |record, number| {
            day(record, number);
            record.front.source.insert("issueId".to_owned(), "1".into());
        });
        assert_eq!(cosines(&issue, &own, |_| true), mixed);
    }
}
