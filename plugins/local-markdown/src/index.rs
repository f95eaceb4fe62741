//! The inverted index, in memory. Postings are per passage; a document is a run of passages.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::files::Stamp;
use crate::record::Record;
use crate::words::{Analyzer, PASSAGE_WORDS, words};

/// How much a word counts by where it stands, in quarters of a word of the text.
const TEXT: u8 = 4;
const SUMMARY: u8 = 6;
const METADATA: u8 = 4;
/// Dates are in every record of a day: they tell little.
const DATE: u8 = 2;
/// A metadata value of at most this many words may be somebody's name.
const ACTOR_WORDS: usize = 3;

/// A document's number. Numbers of removed documents are used again.
pub(crate) type DocId = u32;

/// What is known of a record without reading its file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Doc {
    /// The record's id.
    pub(crate) id: String,
    /// Its file.
    pub(crate) path: String,
    /// The state of the file that is indexed.
    pub(crate) stamp: Stamp,
    /// Partition fields.
    pub(crate) agent: Option<String>,
    /// Partition fields.
    pub(crate) subject: Option<String>,
    /// Partition fields.
    pub(crate) namespace: Option<String>,
    /// The event that it was captured for.
    pub(crate) hook: Option<String>,
    /// What it belongs to: its session, else its run, issue or document.
    pub(crate) group: Option<String>,
    /// When it happened, or was made: RFC 3339, to order the group.
    pub(crate) when: String,
    /// As JSON, for filters.
    pub(crate) metadata: Option<String>,
    /// Its first passage.
    pub(crate) first_passage: u32,
    /// Its terms, once each.
    terms: Vec<u32>,
    /// Words of each passage.
    pub(crate) lengths: Vec<u16>,
}

/// The index.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Index {
    docs: Vec<Option<Doc>>,
    /// By id, which is also the order of lists.
    by_id: BTreeMap<String, DocId>,
    terms: HashMap<String, u32>,
    term_texts: Vec<String>,
    free_terms: Vec<u32>,
    /// By term: passages in ascending order, each with its weight in the low byte.
    postings: Vec<Vec<u32>>,
    /// By passage: whose it is.
    passages: Vec<DocId>,
    /// Passages of removed documents.
    dead_passages: usize,
    total_words: u64,
    #[serde(skip)]
    by_path: HashMap<String, DocId>,
    #[serde(skip)]
    by_hook: HashMap<String, DocId>,
    /// By group: documents in the order in which they happened.
    #[serde(skip)]
    groups: HashMap<String, BTreeMap<(String, String), DocId>>,
    #[serde(skip)]
    folders: HashMap<String, usize>,
}

const NOBODY: DocId = DocId::MAX;
/// Passage numbers have 24 bits of a posting.
const MAX_PASSAGES: usize = 1 << 24;

impl Index {
    /// Makes what is not stored.
    pub(crate) fn restore(mut self) -> Self {
        let docs = std::mem::take(&mut self.docs);
        for (number, doc) in docs.iter().enumerate() {
            if let (Some(doc), Ok(number)) = (doc, DocId::try_from(number)) {
                self.link(number, doc);
            }
        }
        self.docs = docs;
        self
    }

    fn link(&mut self, number: DocId, doc: &Doc) {
        self.by_path.insert(doc.path.clone(), number);
        *self.folders.entry(crate::files::folder(&doc.path).to_owned()).or_default() += 1;
        if let Some(hook) = &doc.hook {
            self.by_hook.insert(hook.clone(), number);
        }
        if let Some(group) = &doc.group {
            self.groups.entry(group.clone()).or_default().insert((doc.when.clone(), doc.id.clone()), number);
        }
    }

    /// How many documents there are.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// One document.
    pub(crate) fn doc(&self, number: DocId) -> Option<&Doc> {
        self.docs.get(number as usize)?.as_ref()
    }

    /// The document of an id.
    pub(crate) fn by_id(&self, id: &str) -> Option<&Doc> {
        self.doc(*self.by_id.get(id)?)
    }

    /// The document of a file.
    pub(crate) fn by_path(&self, path: &str) -> Option<&Doc> {
        self.doc(*self.by_path.get(path)?)
    }

    /// The document that was captured for an event.
    pub(crate) fn by_hook(&self, hook: &str) -> Option<&Doc> {
        self.doc(*self.by_hook.get(hook)?)
    }

    /// Documents behind an id, in the order of ids.
    pub(crate) fn behind(&self, id: Option<&str>) -> impl Iterator<Item = &Doc> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = id.map_or(Unbounded, |id| Excluded(id.to_owned()));
        self.by_id.range::<String, _>((from, Unbounded)).filter_map(|(_, number)| self.doc(*number))
    }

    /// All documents.
    pub(crate) fn docs(&self) -> impl Iterator<Item = (DocId, &Doc)> {
        self.by_id.values().filter_map(|number| Some((*number, self.doc(*number)?)))
    }

    /// How many files a folder has.
    pub(crate) fn folder_size(&self, folder: &str) -> usize {
        self.folders.get(folder).copied().unwrap_or(0)
    }

    /// A group's documents in their order.
    pub(crate) fn group(&self, name: &str) -> Option<&BTreeMap<(String, String), DocId>> {
        self.groups.get(name)
    }

    /// The passages that have a term, each with its weight in quarters.
    pub(crate) fn postings(&self, term: &str) -> &[u32] {
        self.terms.get(term).and_then(|term| self.postings.get(*term as usize)).map_or(&[], Vec::as_slice)
    }

    /// How many passages numbers go up to, and how many of them are in use.
    pub(crate) fn passages(&self) -> (usize, usize) {
        (self.passages.len(), self.passages.len() - self.dead_passages)
    }

    /// Whose passage it is, and how many words it has.
    pub(crate) fn passage(&self, passage: u32) -> Option<(DocId, u16)> {
        let number = *self.passages.get(passage as usize)?;
        let doc = self.doc(number)?;
        Some((number, *doc.lengths.get((passage - doc.first_passage) as usize)?))
    }

    /// The words of all passages together.
    pub(crate) fn total_words(&self) -> u64 {
        self.total_words
    }

    /// Indexes a record, in place of what had its id or its file before.
    pub(crate) fn insert(&mut self, analyzer: &Analyzer, id: String, path: String, stamp: Stamp, record: &Record) {
        self.remove_path(&path);
        if let Some(before) = self.by_id.get(&id).copied() {
            self.remove(before);
        }
        let scope = |name: &str| record.scope(name).map(str::to_owned);
        let mut doc = Doc {
            agent: scope("agentId"),
            subject: scope("subjectId"),
            namespace: scope("namespace"),
            hook: record.front.hook_id.clone(),
            group: group(record),
            when: record.front.occurred_at.clone().or_else(|| record.front.created_at.clone()).unwrap_or_default(),
            metadata: record.front.metadata.as_ref().map(|map| serde_json::Value::Object(map.clone()).to_string()),
            first_passage: u32::try_from(self.passages.len()).unwrap_or(u32::MAX),
            id,
            path,
            stamp,
            ..Doc::default()
        };
        let weights = weigh(analyzer, record, &mut doc.lengths);
        if self.passages.len() + doc.lengths.len() > MAX_PASSAGES {
            log::error!("the index is full at {MAX_PASSAGES} passages; {} is not searchable", doc.path);
            return;
        }
        let number = match self.docs.iter().rposition(Option::is_none) {
            // Looking for a free number is only worth it where there are some.
            Some(free) if self.docs.len() > self.by_id.len() => free,
            _ => {
                self.docs.push(None);
                self.docs.len() - 1
            }
        };
        let Ok(number) = DocId::try_from(number) else { return };
        for (passage, weights) in weights.into_iter().enumerate() {
            self.passages.push(number);
            let passage = doc.first_passage + u32::try_from(passage).unwrap_or(0);
            for (term, weight) in weights {
                let term = self.term(term);
                self.postings[term as usize].push(passage << 8 | u32::from(weight));
                doc.terms.push(term);
            }
        }
        doc.terms.sort_unstable();
        doc.terms.dedup();
        self.total_words += doc.lengths.iter().map(|length| u64::from(*length)).sum::<u64>();
        self.link(number, &doc);
        self.by_id.insert(doc.id.clone(), number);
        self.docs[number as usize] = Some(doc);
    }

    fn term(&mut self, text: String) -> u32 {
        if let Some(term) = self.terms.get(&text) {
            return *term;
        }
        let term = match self.free_terms.pop() {
            Some(free) => {
                self.term_texts[free as usize].clone_from(&text);
                free
            }
            None => {
                self.term_texts.push(text.clone());
                self.postings.push(Vec::new());
                u32::try_from(self.postings.len() - 1).unwrap_or(u32::MAX)
            }
        };
        self.terms.insert(text, term);
        term
    }

    /// Takes a file's record out.
    pub(crate) fn remove_path(&mut self, path: &str) {
        if let Some(number) = self.by_path.get(path).copied() {
            self.remove(number);
        }
    }

    /// Takes a document out, with every word that nobody else has.
    fn remove(&mut self, number: DocId) {
        let Some(doc) = self.docs.get_mut(number as usize).and_then(Option::take) else { return };
        let passages = doc.first_passage..doc.first_passage + u32::try_from(doc.lengths.len()).unwrap_or(0);
        for term in &doc.terms {
            let postings = &mut self.postings[*term as usize];
            let from = postings.partition_point(|posting| posting >> 8 < passages.start);
            let to = postings.partition_point(|posting| posting >> 8 < passages.end);
            postings.drain(from..to);
            if postings.is_empty() {
                self.terms.remove(&std::mem::take(&mut self.term_texts[*term as usize]));
                self.free_terms.push(*term);
            }
        }
        for passage in passages.clone() {
            self.passages[passage as usize] = NOBODY;
        }
        self.dead_passages += passages.len();
        self.total_words -= doc.lengths.iter().map(|length| u64::from(*length)).sum::<u64>();
        self.by_id.remove(&doc.id);
        self.by_path.remove(&doc.path);
        if let Some(size) = self.folders.get_mut(crate::files::folder(&doc.path)) {
            *size -= 1;
        }
        if let Some(hook) = &doc.hook {
            self.by_hook.remove(hook);
        }
        if let Some(group) = &doc.group
            && let Some(members) = self.groups.get_mut(group)
        {
            members.remove(&(doc.when, doc.id));
        }
    }

    /// Gives passages new numbers where more than half of them are dead.
    pub(crate) fn compact(&mut self) {
        if self.dead_passages * 2 <= self.passages.len() || self.dead_passages < 1_024 {
            return;
        }
        let mut renumbered = vec![u32::MAX; self.passages.len()];
        let mut passages = Vec::with_capacity(self.passages.len() - self.dead_passages);
        for (old, owner) in self.passages.iter().enumerate().filter(|(_, owner)| **owner != NOBODY) {
            renumbered[old] = u32::try_from(passages.len()).unwrap_or(u32::MAX);
            passages.push(*owner);
        }
        for postings in &mut self.postings {
            for posting in postings {
                *posting = renumbered[(*posting >> 8) as usize] << 8 | (*posting & 0xff);
            }
        }
        for doc in self.docs.iter_mut().flatten().filter(|doc| !doc.lengths.is_empty()) {
            doc.first_passage = renumbered[doc.first_passage as usize];
        }
        self.passages = passages;
        self.dead_passages = 0;
    }
}

fn group(record: &Record) -> Option<String> {
    let source = |name: &str| record.front.source.get(name).and_then(serde_json::Value::as_str);
    let found = record
        .scope("sessionKey")
        .map(|key| ("session", key))
        .or_else(|| source("documentKey").map(|key| ("document", key.split('#').next().unwrap_or(key))))
        .or_else(|| source("issueId").or_else(|| record.scope("issueId")).map(|key| ("issue", key)))
        .or_else(|| source("runId").or_else(|| record.scope("runId")).map(|key| ("run", key)));
    found.map(|(kind, key)| format!("{kind}:{key}"))
}

/// Each passage's terms with their weights; its length in words goes to `lengths`.
fn weigh(analyzer: &Analyzer, record: &Record, lengths: &mut Vec<u16>) -> Vec<HashMap<String, u8>> {
    let mut passages: Vec<HashMap<String, u8>> = vec![HashMap::new()];
    lengths.push(0);
    let add = |passage: &mut HashMap<String, u8>, term: String, weight: u8| {
        let sum = passage.entry(term).or_default();
        *sum = sum.saturating_add(weight);
    };
    for (_, word) in words(&record.text) {
        if usize::from(lengths[lengths.len() - 1]) == PASSAGE_WORDS {
            passages.push(HashMap::new());
            lengths.push(0);
        }
        if let Some(length) = lengths.last_mut() {
            *length += 1;
        }
        if !analyzer.is_stop_word(&word)
            && let Some(passage) = passages.last_mut()
        {
            add(passage, analyzer.term(&word), TEXT);
        }
    }
    // What describes the whole record counts for its first passage.
    let first = &mut passages[0];
    for (_, word) in words(record.front.summary.as_deref().unwrap_or_default()) {
        if !analyzer.is_stop_word(&word) {
            add(first, analyzer.term(&word), SUMMARY);
        }
    }
    for text in record.front.metadata.iter().flat_map(|map| map.values()).flat_map(strings) {
        let found: Vec<String> = words(text).map(|(_, word)| word).collect();
        for word in &found {
            if found.len() <= ACTOR_WORDS {
                add(first, actor(word), TEXT);
            }
            if !analyzer.is_stop_word(word) {
                add(first, analyzer.term(word), METADATA);
            }
        }
    }
    for word in date_words(record.front.occurred_at.as_deref()) {
        add(first, analyzer.term(&word), DATE);
    }
    passages
}

/// The term under which a short metadata value is found as a name. No word has a colon.
pub(crate) fn actor(word: &str) -> String {
    format!("actor:{word}")
}

fn strings(value: &serde_json::Value) -> Vec<&str> {
    match value {
        serde_json::Value::String(text) => vec![text],
        serde_json::Value::Array(items) => items.iter().filter_map(serde_json::Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// A date as people ask for it: the month's name and the year.
fn date_words(at: Option<&str>) -> Vec<String> {
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
    let Some(at) = at else { return Vec::new() };
    let mut parts = at.split(['-', 'T']);
    let (year, month) = (parts.next(), parts.next().and_then(|month| month.parse::<usize>().ok()));
    let month = month.and_then(|month| MONTHS.get(month.wrapping_sub(1)));
    year.map(str::to_owned).into_iter().chain(month.map(|month| (*month).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Language;
    use crate::record::Front;

    fn insert(index: &mut Index, id: &str, text: &str) {
        let analyzer = Analyzer::new(Language::English);
        let record = Record { front: Front::default(), text: text.to_owned() };
        index.insert(&analyzer, id.to_owned(), format!("day/{id}.md"), Stamp::default(), &record);
    }

    #[test]
    fn what_is_removed_leaves_no_word() {
        let mut index = Index::default();
        insert(&mut index, "a", "zebras and lions");
        insert(&mut index, "b", "lions alone");
        index.remove_path("day/a.md");
        assert!(index.postings("zebra").is_empty());
        assert_eq!(index.postings("lion").len(), 1);
        assert!(!index.term_texts.contains(&"zebra".to_owned()) && !index.terms.contains_key("zebra"));
        insert(&mut index, "c", "whales");
        assert_eq!(index.len(), 2);
        assert_eq!(index.passage(index.postings("whale")[0] >> 8).unwrap().1, 1);
    }

    #[test]
    fn long_texts_have_passages_and_compaction_keeps_them() {
        let mut index = Index::default();
        for n in 0..3_000 {
            insert(&mut index, &format!("r{n}"), &format!("word{n} {}", "filler ".repeat(70)));
        }
        for n in 0..2_900 {
            index.remove_path(&format!("day/r{n}.md"));
        }
        index.compact();
        assert_eq!(index.passages(), (200, 200));
        let posting = index.postings("word2950")[0];
        let (number, length) = index.passage(posting >> 8).unwrap();
        assert_eq!((index.doc(number).unwrap().id.as_str(), length), ("r2950", 60));
    }
}
