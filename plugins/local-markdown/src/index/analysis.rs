//! The terms of a record with their weights, passage by passage.

use std::rc::Rc;

use serde_json::Value;

use super::passage::UNTOLD;
use crate::record::{Record, instant};
use crate::text::{Analyzer, Term, parts, passage_lengths, words};

/// The weights of words by their place, in quarters of a word of the text. A word of the summary
/// counts more.
const TEXT: u8 = 4;
/// A text often says first what it is about.
const LEAD: u8 = 6;
/// The number of words that count as the first ones of a text.
const LEAD_WORDS: usize = 25;
const SUMMARY: u8 = 6;
const METADATA: u8 = 4;
/// A part of a name such as `readUserName`.
const PART: u8 = 4;
/// Words of a date count less, because every record of that day has them.
const DATE: u8 = 2;
/// A metadata value of at most this many words may be a name.
const NAME_WORDS: usize = 3;
/// Metadata beyond this many words is data, not description.
const METADATA_WORDS: usize = 200;

/// A record's terms.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Analysis {
    /// The number of words of each passage. A record without words has one passage of 0.
    pub(crate) lengths: Vec<u8>,
    /// The number of terms of each passage.
    pub(crate) counts: Vec<u16>,
    /// The distinct terms of each passage with their weights in quarters, passage by passage, each
    /// in order.
    pub(crate) terms: Terms,
    /// For each word of the text: the place of its term among those of its passage, or [`UNTOLD`].
    pub(crate) order: Bytes,
}

/// Bytes as they are stored, which they may share with a whole page: nothing is copied when the
/// index is opened.
#[derive(Debug, Clone)]
pub(crate) struct Bytes {
    bytes: Rc<Vec<u8>>,
    from: u32,
    to: u32,
}

impl Bytes {
    /// A part of a page.
    pub(super) fn shared(page: &Rc<Vec<u8>>, part: std::ops::Range<usize>) -> Option<Self> {
        let (from, to) = (u32::try_from(part.start).ok()?, u32::try_from(part.end).ok()?);
        (part.start <= part.end && part.end <= page.len()).then(|| Self {
            bytes: Rc::clone(page),
            from,
            to,
        })
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.from as usize..self.to as usize]
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        let to = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        Self { bytes: Rc::new(bytes), from: 0, to }
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

/// Terms as they are stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Terms(pub(super) Bytes);

impl Terms {
    /// Passage by passage.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Weighted> + '_ {
        self.chunks().iter().map(|bytes| Weighted(*bytes))
    }

    /// Each as it is stored.
    pub(super) fn chunks(&self) -> &[[u8; Weighted::BYTES]] {
        self.0.as_chunks().0
    }
}

impl FromIterator<Weighted> for Terms {
    fn from_iter<I: IntoIterator<Item = Weighted>>(all: I) -> Self {
        Self(all.into_iter().flat_map(|weighted| weighted.0).collect::<Vec<u8>>().into())
    }
}

/// A term with its weight in quarters, as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Weighted(pub(super) [u8; Self::BYTES]);

impl Weighted {
    /// How many bytes one has.
    pub(super) const BYTES: usize = 7;

    fn new(term: Term, weight: u8) -> Self {
        let [a, b, c, d, e, f, ..] = term.to_le_bytes();
        Self([a, b, c, d, e, f, weight])
    }

    /// The term.
    pub(crate) fn term(self) -> Term {
        let [a, b, c, d, e, f, _] = self.0;
        Term::from_le_bytes([a, b, c, d, e, f, 0, 0])
    }

    /// Its lowest byte.
    pub(super) fn lowest(self) -> u8 {
        self.0[0]
    }

    /// The weight, in quarters.
    pub(crate) fn weight(self) -> u8 {
        self.0[Self::BYTES - 1]
    }
}

impl Analysis {
    /// Reads a record.
    pub(crate) fn of(analyzer: &Analyzer, record: &Record) -> Self {
        let (mut lengths, mut counts, mut terms, mut order) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut passage: Vec<(Term, u8)> = Vec::new();
        // Summary, dates and metadata count for the first passage.
        let first = describe(analyzer, record);
        let count = words(&record.text).count();
        let mut all = words(&record.text).enumerate();
        for length in passage_lengths(count) {
            passage.clear();
            let mut said = Vec::with_capacity(length);
            for (number, word) in all.by_ref().take(length) {
                let is_told = !analyzer.is_stop_word(&word.text);
                said.push(is_told.then(|| analyzer.term(&word.text)));
                let weight = if number < LEAD_WORDS { LEAD } else { TEXT };
                // Stop words are included, because a question may consist of them.
                passage.extend(analyzer.terms(&word.text).map(|term| (term, weight)));
                let parts = parts(&record.text[word.at..word.end]);
                passage.extend(parts.iter().map(|part| (analyzer.term(part), PART)));
            }
            if lengths.is_empty() {
                passage.extend_from_slice(&first);
            }
            let before = terms.len();
            push(&mut terms, &mut passage);
            order.extend(
                said.into_iter()
                    .map(|term| term.map_or(UNTOLD, |term| place(&terms[before..], term))),
            );
            counts.push(u16::try_from(terms.len() - before).unwrap_or(u16::MAX));
            lengths.push(u8::try_from(length).unwrap_or(u8::MAX));
        }
        Self { lengths, counts, terms: terms.into_iter().collect(), order: order.into() }
    }
}

/// The place of a term among those of a passage, [`UNTOLD`] if it has none.
fn place(terms: &[Weighted], term: Term) -> u8 {
    let found = terms.binary_search_by_key(&term, |weighted| weighted.term());
    found.ok().and_then(|place| u8::try_from(place).ok()).unwrap_or(UNTOLD)
}

/// Adds the distinct terms of a passage.
fn push(terms: &mut Vec<Weighted>, passage: &mut [(Term, u8)]) {
    passage.sort_unstable();
    let before = terms.len();
    for (term, weight) in passage {
        match terms.get_mut(before..).and_then(<[_]>::last_mut) {
            Some(last) if last.term() == *term => {
                *last = Weighted::new(*term, last.weight().saturating_add(*weight));
            }
            _ => terms.push(Weighted::new(*term, *weight)),
        }
    }
}

fn describe(analyzer: &Analyzer, record: &Record) -> Vec<(Term, u8)> {
    let mut terms = Vec::new();
    let front = &record.front;
    for word in words(front.summary.as_deref().unwrap_or_default()) {
        if !analyzer.is_stop_word(&word.text) {
            terms.extend(analyzer.terms(&word.text).map(|term| (term, SUMMARY)));
        }
    }
    let mut left = METADATA_WORDS;
    for text in
        front.metadata.iter().chain([&front.other]).flat_map(|map| map.values()).flat_map(strings)
    {
        let found: Vec<String> = words(text).take(left).map(|word| word.text).collect();
        left -= found.len();
        for word in found.iter().filter(|word| !analyzer.is_stop_word(word)) {
            if found.len() <= NAME_WORDS {
                terms.push((Analyzer::name(word), TEXT));
            }
            terms.extend(analyzer.terms(word).map(|term| (term, METADATA)));
        }
    }
    if let Some(when) = front.occurred_at.as_deref().and_then(instant) {
        terms.extend(date_words(when).iter().map(|word| (analyzer.term(word), DATE)));
    }
    terms
}

fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(members) => members.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}

/// The words of a date: the month's name, the year and the day.
fn date_words(when: jiff::Timestamp) -> [String; 3] {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let date = jiff::tz::Offset::UTC.to_datetime(when).date();
    let month = MONTHS[usize::try_from(date.month() - 1).unwrap_or(0).min(11)];
    [month.to_owned(), date.year().to_string(), date.day().to_string()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Language;
    use crate::record::Front;

    #[test]
    fn words_count_by_where_they_stand() {
        let analyzer = Analyzer::new(Language::English);
        let front = Front {
            summary: Some("launches".to_owned()),
            occurred_at: Some("2026-03-09T00:00:00Z".to_owned()),
            metadata: serde_json::from_str(r#"{"speaker":"Ana","n":3}"#).unwrap(),
            ..Front::default()
        };
        let found =
            Analysis::of(&analyzer, &Record { front, text: "The launch, the launch".to_owned() });
        let weight = |term| {
            found.terms.iter().find(|found| found.term() == term).map(|found| found.weight())
        };
        assert_eq!(weight(analyzer.term("launch")), Some(LEAD * 2 + SUMMARY));
        assert_eq!(weight(analyzer.term("march")), Some(DATE));
        assert_eq!(weight(analyzer.term("ana")), Some(METADATA));
        assert!(weight(Analyzer::name("ana")).is_some());
        assert_eq!(weight(analyzer.term("the")), Some(LEAD * 2));
        assert_eq!((found.lengths, found.counts), (vec![4], vec![7]));
        let launch = place(&found.terms.iter().collect::<Vec<_>>(), analyzer.term("launch"));
        assert_eq!(*found.order, [UNTOLD, launch, UNTOLD, launch]);
    }

    #[test]
    fn parts_of_names_count() {
        let analyzer = Analyzer::new(Language::English);
        let found = Analysis::of(
            &analyzer,
            &Record { text: "readUserName".to_owned(), ..Record::default() },
        );
        let weight = |word| {
            found
                .terms
                .iter()
                .find(|found| found.term() == analyzer.term(word))
                .map(Weighted::weight)
        };
        let expected = [Some(LEAD), Some(PART), Some(PART), None];
        assert_eq!(["readusername", "user", "name", "us"].map(weight), expected);
        // They are not words of the text.
        assert_eq!((found.lengths, found.order.len()), (vec![1], 1));
    }

    #[test]
    fn the_first_words_of_a_text_count_more() {
        let analyzer = Analyzer::new(Language::English);
        let text = format!("zebra {} lion", "filler ".repeat(LEAD_WORDS - 1));
        let found = Analysis::of(&analyzer, &Record { text, ..Record::default() });
        let weight = |word| {
            found.terms.iter().find(|found| found.term() == analyzer.term(word)).unwrap().weight()
        };
        assert_eq!((weight("zebra"), weight("lion")), (LEAD, TEXT));
    }
}
