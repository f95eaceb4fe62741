//! The records of the index by number, id, path, event and place in lists.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::postings::Postings;
use super::sessions::Sessions;
use super::{Analysis, Bytes, Entry, Key, Partition, Passage, Terms};
use crate::files::Stamp;
use crate::hash::Seeded;
use crate::text::Term;

/// An index that is opened with more records makes the lists of terms when they are asked for.
const SMALL: usize = 16_384;
/// Memory is reserved for at most so many records.
const MOST_RESERVED: usize = 1 << 18;
/// After so many questions with new terms all lists are made.
const READINGS: usize = 32;

/// A record's number in this instance. Numbers of removed records are used again.
pub(crate) type DocId = u32;

/// A record of the index.
#[derive(Debug)]
pub(crate) struct Doc {
    /// The record's id.
    pub(crate) id: Rc<str>,
    /// Its file.
    pub(crate) path: Rc<str>,
    /// The state of the file that is indexed.
    pub(crate) stamp: Stamp,
    /// Its place in lists.
    pub(crate) key: Key,
    /// When it happened, in microseconds since 1970.
    pub(crate) when: i64,
    /// Its session; 0 is none.
    pub(crate) session: u64,
    /// Hashes of its metadata's members.
    pub(crate) members: Box<[u64]>,
    /// Its first passage.
    pub(crate) first_passage: u32,
    lengths: Box<[u8]>,
    counts: Box<[u16]>,
    terms: Terms,
    order: Bytes,
}

impl Doc {
    /// How many passages it has.
    pub(crate) fn passages(&self) -> usize {
        self.lengths.len()
    }

    /// Its passages.
    pub(crate) fn read(&self) -> impl Iterator<Item = Passage<'_>> {
        let (mut terms, mut order) = (self.terms.chunks(), &*self.order);
        self.counts.iter().zip(&self.lengths).map_while(move |(count, length)| {
            let passage;
            (passage, terms) = terms.split_at_checked(usize::from(*count))?;
            let words;
            (words, order) = order.split_at_checked(usize::from(*length))?;
            Some(Passage { terms: passage, order: words })
        })
    }
}

/// The index.
#[derive(Debug, Default)]
pub(crate) struct Index {
    docs: Vec<Option<Doc>>,
    /// By record: the number of its partition. It is stored apart from the records, because a
    /// search reads it far more often.
    partition_of: Vec<u32>,
    /// By record: how many words it has.
    words_of: Vec<u32>,
    free: Vec<DocId>,
    by_id: HashMap<Rc<str>, DocId, Seeded>,
    by_path: HashMap<Rc<str>, DocId, Seeded>,
    /// The order of lists, made when it is first asked for: a search does not need it.
    order: OnceCell<BTreeSet<(Key, DocId)>>,
    partitions: Vec<Partition>,
    partition_numbers: HashMap<Partition, u32, Seeded>,
    /// How often lists were made for some terms alone.
    readings: usize,
    /// The inverted index.
    pub(crate) postings: Postings,
    /// Neighbours.
    pub(crate) sessions: Sessions,
}

impl Index {
    /// How many records there are.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// One more than the largest number of a record.
    pub(crate) fn slots(&self) -> usize {
        self.docs.len()
    }

    /// One record.
    pub(crate) fn doc(&self, doc: DocId) -> Option<&Doc> {
        self.docs.get(doc as usize)?.as_ref()
    }

    /// The record of an id.
    pub(crate) fn by_id(&self, id: &str) -> Option<DocId> {
        self.by_id.get(id).copied()
    }

    /// The record of a file.
    pub(crate) fn by_path(&self, path: &str) -> Option<DocId> {
        self.by_path.get(path).copied()
    }

    /// The records after a place, in the order of lists.
    pub(crate) fn behind(&self, key: Option<Key>) -> impl Iterator<Item = (DocId, &Doc)> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = key.map_or(Unbounded, |key| Excluded((key, DocId::MAX)));
        let keys =
            || (0..).zip(&self.docs).filter_map(|(number, doc)| Some((doc.as_ref()?.key, number)));
        let order = self.order.get_or_init(|| keys().collect());
        order.range((from, Unbounded)).filter_map(|(_, doc)| Some((*doc, self.doc(*doc)?)))
    }

    /// The number of a record's partition.
    pub(crate) fn partition_of(&self, doc: DocId) -> usize {
        self.partition_of[doc as usize] as usize
    }

    /// How many words the text of a record has.
    pub(crate) fn words_of(&self, doc: DocId) -> u32 {
        self.words_of[doc as usize]
    }

    /// The partitions by number.
    pub(crate) fn partitions(&self) -> &[Partition] {
        &self.partitions
    }

    /// Adds a record, and removes the one that had its id or its file before. None if the index is
    /// full.
    pub(crate) fn insert(&mut self, entry: Entry) -> Option<DocId> {
        let before = [self.by_path(&entry.path), self.by_id(&entry.id)];
        before.into_iter().flatten().for_each(|doc| self.remove(doc));
        self.add(entry)
    }

    /// Adds a record of whose id and file there is none. None if the index is full.
    pub(crate) fn add(&mut self, entry: Entry) -> Option<DocId> {
        if !self.postings.has_room(entry.analysis.lengths.len()) {
            log::error!(
                "the index is full; {} is not searchable until other records are forgotten",
                entry.path
            );
            return None;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.docs.push(None);
            self.partition_of.push(0);
            self.words_of.push(0);
            DocId::try_from(self.docs.len() - 1).unwrap_or(DocId::MAX)
        });
        self.partition_of[number as usize] = self.partition(entry.partition);
        let Analysis { lengths, counts, terms, order } = entry.analysis;
        let words = lengths.iter().map(|length| u32::from(*length)).sum();
        self.words_of[number as usize] = words;
        let doc = Doc {
            id: entry.id,
            path: entry.path,
            stamp: entry.stamp,
            key: entry.key,
            when: entry.when,
            session: entry.session,
            members: entry.members.into(),
            first_passage: self.postings.add(number, &lengths, &counts, &terms),
            lengths: lengths.into(),
            counts: counts.into(),
            terms,
            order,
        };
        self.by_id.insert(Rc::clone(&doc.id), number);
        self.by_path.insert(Rc::clone(&doc.path), number);
        if let Some(order) = self.order.get_mut() {
            order.insert((doc.key, number));
        }
        self.sessions.insert(doc.session, doc.when, doc.key, number, words);
        self.docs[number as usize] = Some(doc);
        Some(number)
    }

    /// An index that will get so many records at once. A large one makes the lists of terms when
    /// they are asked for.
    pub(crate) fn expecting(records: usize) -> Self {
        let mut index = Self::default();
        index.postings.set_lazy(records > SMALL);
        let records = records.min(MOST_RESERVED);
        index.docs.reserve(records);
        index.partition_of.reserve(records);
        index.words_of.reserve(records);
        index.by_id.reserve(records);
        index.by_path.reserve(records);
        index
    }

    /// Makes the lists of these terms, if they are missing. After some such calls it makes all
    /// lists.
    pub(crate) fn prepare(&mut self, terms: &[Term]) {
        let missing: Vec<Term> = terms
            .iter()
            .copied()
            .filter(|term| self.postings.is_lazy() && !self.postings.knows(*term))
            .collect();
        if missing.is_empty() {
            return;
        }
        self.readings += 1;
        if self.readings > READINGS {
            self.postings.set_lazy(false);
            self.renumber();
            return;
        }
        // Most terms are told apart by their lowest byte.
        let mut may_be = [false; 256];
        missing.iter().for_each(|term| may_be[usize::from(term.to_le_bytes()[0])] = true);
        for doc in self.docs.iter().flatten() {
            let mut all = doc.terms.iter();
            for (passage, count) in (doc.first_passage..).zip(&doc.counts) {
                for weighted in all.by_ref().take(usize::from(*count)) {
                    if may_be[usize::from(weighted.lowest())] && missing.contains(&weighted.term())
                    {
                        self.postings.fill(weighted.term(), passage, weighted.weight());
                    }
                }
            }
        }
        missing.iter().for_each(|term| self.postings.sort(*term));
    }

    /// Removes a record.
    pub(crate) fn remove(&mut self, number: DocId) {
        let Some(doc) = self.docs.get_mut(number as usize).and_then(Option::take) else { return };
        self.postings.remove(doc.first_passage, &doc.lengths, &doc.terms);
        self.by_id.remove(&doc.id);
        self.by_path.remove(&doc.path);
        if let Some(order) = self.order.get_mut() {
            order.remove(&(doc.key, number));
        }
        self.sessions.remove(doc.session, doc.when, doc.key, number);
        self.free.push(number);
        if self.postings.is_worn() {
            self.renumber();
        }
    }

    /// The entry of a record.
    pub(super) fn entry(&self, number: DocId) -> Option<Entry> {
        let doc = self.doc(number)?;
        Some(Entry {
            id: Rc::clone(&doc.id),
            path: Rc::clone(&doc.path),
            stamp: doc.stamp,
            partition: self.partitions[self.partition_of(number)].clone(),
            key: doc.key,
            when: doc.when,
            session: doc.session,
            members: doc.members.to_vec(),
            analysis: Analysis {
                lengths: doc.lengths.to_vec(),
                counts: doc.counts.to_vec(),
                terms: doc.terms.clone(),
                order: doc.order.clone(),
            },
        })
    }

    fn partition(&mut self, partition: Partition) -> u32 {
        if let Some(number) = self.partition_numbers.get(&partition) {
            return *number;
        }
        let number = u32::try_from(self.partitions.len()).unwrap_or(u32::MAX);
        self.partitions.push(partition.clone());
        self.partition_numbers.insert(partition, number);
        number
    }

    fn renumber(&mut self) {
        self.postings.clear();
        for (number, doc) in (0..).zip(&mut self.docs) {
            if let Some(doc) = doc {
                doc.first_passage =
                    self.postings.add(number, &doc.lengths, &doc.counts, &doc.terms);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Language;
    use crate::record::Record;
    use crate::text::Analyzer;

    fn insert(index: &mut Index, id: &str, text: &str) {
        let record = Record { text: text.to_owned(), ..Record::default() };
        let analyzer = Analyzer::new(Language::English);
        let path = format!("day/{id}.md");
        index.insert(Entry::of(&analyzer, id.to_owned(), path, Stamp::default(), &record)).unwrap();
    }

    fn found(index: &Index, word: &str) -> Vec<String> {
        let (postings, alive) = index.postings.of(Analyzer::new(Language::English).term(word));
        let found: Vec<String> = postings
            .iter()
            .filter_map(|posting| index.postings.passage(posting.passage()))
            .map(|(doc, _)| index.doc(doc).unwrap().id.to_string())
            .collect();
        assert_eq!(found.len(), alive as usize);
        found
    }

    #[test]
    fn removed_records_are_not_found() {
        let mut index = Index::default();
        insert(&mut index, "a", "zebras and lions");
        insert(&mut index, "b", "lions alone");
        index.remove(index.by_path("day/a.md").unwrap());
        assert!(found(&index, "zebra").is_empty());
        assert_eq!(found(&index, "lion"), ["b"]);
        insert(&mut index, "c", "whales");
        insert(&mut index, "b", "eagles");
        assert_eq!((index.len(), found(&index, "lion").len()), (2, 0));
        assert_eq!(
            (found(&index, "whale"), found(&index, "eagle")),
            (vec!["c".to_owned()], vec!["b".to_owned()])
        );
    }

    #[test]
    fn lists_are_made_when_they_are_asked_for() {
        let term = |word: &str| Analyzer::new(Language::English).term(word);
        let mut index = Index::expecting(SMALL + 1);
        insert(&mut index, "a", "zebras and lions");
        insert(&mut index, "b", "lions alone");
        assert!(found(&index, "lion").is_empty());
        index.prepare(&[term("lion")]);
        assert_eq!(found(&index, "lion"), ["a", "b"]);
        // Changes reach the lists that there are, and only those.
        insert(&mut index, "c", "whales with lions");
        index.remove(index.by_path("day/a.md").unwrap());
        assert_eq!(found(&index, "lion"), ["b", "c"]);
        assert!(found(&index, "whale").is_empty());
        index.prepare(&[term("whale"), term("zebra"), term("lion")]);
        assert_eq!(
            (found(&index, "whale"), found(&index, "lion").len()),
            (vec!["c".to_owned()], 2)
        );
        assert!(found(&index, "zebra").is_empty());
        (0..READINGS).for_each(|n| index.prepare(&[term(&format!("word{n}"))]));
        assert!(!index.postings.is_lazy());
        assert_eq!(
            (found(&index, "alone"), found(&index, "lion").len()),
            (vec!["b".to_owned()], 2)
        );
    }

    #[test]
    fn wear_is_repaired() {
        let mut index = Index::default();
        for n in 0..6_000 {
            insert(&mut index, "same", &format!("word{n} {}", "filler ".repeat(70)));
        }
        assert!(index.postings.slots() < 10_000, "{}", index.postings.slots());
        assert_eq!(found(&index, "word5999"), ["same"]);
        assert!(found(&index, "word5998").is_empty());
    }
}
