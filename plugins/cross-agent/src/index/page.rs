//! The stored form of the index: pages of some entries each. A change rewrites the pages of its
//! items, so that a forgotten item is removed from storage at once. A page holds no word of a text,
//! only hashes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::places::Sight;
use crate::item::{Facts, Item};
use crate::text::{Analyzer, TERM_BYTES, Term, hash};

/// The most items of one page.
const PAGE_ITEMS: usize = 128;
/// A page of this many bytes takes no further item; one long item may have a larger page to itself.
const PAGE_BYTES: usize = 128 << 10;

/// The index entry of an item.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    /// The item's id.
    pub(crate) id: String,
    /// Its place.
    pub(crate) place: Sight,
    /// 0 to 1.
    pub(crate) confidence: f32,
    /// Microseconds since 1970.
    pub(crate) when: i64,
    /// How many terms it has, with repetitions.
    pub(crate) length: u16,
    /// Hashes of its metadata's members, for filters.
    pub(crate) members: Vec<u64>,
    /// Its distinct terms, each with its number.
    pub(crate) terms: Vec<(Term, u8)>,
}

impl Entry {
    /// The entry of an item.
    pub(crate) fn of(item: &Item, analyzer: &mut Analyzer) -> Self {
        let facts = Facts::of(item);
        let mut all = analyzer.terms(&item.content);
        for text in item.summary.iter().chain(&facts.tags) {
            all.extend(analyzer.terms(text));
        }
        let length = u16::try_from(all.len()).unwrap_or(u16::MAX);
        all.sort_unstable();
        let terms = all.chunk_by(|a, b| a == b);
        Self {
            id: item.id.clone(),
            place: Sight {
                agent: item.scope.agent_id.clone(),
                subject: item.scope.subject_id.clone(),
                namespace: item.scope.namespace.clone(),
                project: item.project().map(str::to_owned),
                is_global: facts.is_global,
            },
            confidence: facts.confidence,
            when: facts.when,
            length,
            members: members(item.metadata.as_ref()),
            terms: terms
                .map(|same| (same[0], u8::try_from(same.len()).unwrap_or(u8::MAX)))
                .collect(),
        }
    }
}

/// Hashes of an object's members. They do not depend on the order of members inside a value.
pub(crate) fn members(object: Option<&Map<String, Value>>) -> Vec<u64> {
    let member = |(name, value): (&String, &Value)| {
        let name = hash(b"member", name.as_bytes()).to_le_bytes();
        hash(&name, value.to_string().as_bytes())
    };
    object.into_iter().flatten().map(member).collect()
}

/// Entries that are stored together.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// In no order.
    pub(crate) entries: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    id: &'a str,
    place: Sight,
    confidence: f32,
    when: i64,
    length: u16,
    members: Vec<u64>,
    terms: &'a [u8],
}

impl Page {
    /// Whether another entry still fits.
    pub(crate) fn has_room(items: usize, bytes: usize) -> bool {
        items < PAGE_ITEMS && bytes < PAGE_BYTES
    }

    /// The stored form.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, postcard::Error> {
        let mut out = Vec::new();
        for entry in &self.entries {
            let mut terms = Vec::with_capacity(entry.terms.len() * (TERM_BYTES + 1));
            for (term, count) in &entry.terms {
                terms.extend_from_slice(&term.to_le_bytes()[..TERM_BYTES]);
                terms.push(*count);
            }
            let stored = Stored {
                id: &entry.id,
                place: entry.place.clone(),
                confidence: entry.confidence,
                when: entry.when,
                length: entry.length,
                members: entry.members.clone(),
                terms: &terms,
            };
            out = postcard::to_extend(&stored, out)?;
        }
        Ok(out)
    }

    /// The inverse of [`Self::encode`].
    pub(crate) fn decode(mut rest: &[u8]) -> Result<Self, postcard::Error> {
        let mut entries = Vec::new();
        while !rest.is_empty() {
            let (stored, behind) = postcard::take_from_bytes::<Stored<'_>>(rest)?;
            let term = |bytes: &[u8]| {
                let mut wide = [0; 8];
                wide[..TERM_BYTES].copy_from_slice(&bytes[..TERM_BYTES]);
                (Term::from_le_bytes(wide), bytes[TERM_BYTES])
            };
            entries.push(Entry {
                id: stored.id.to_owned(),
                place: stored.place,
                confidence: stored.confidence,
                when: stored.when,
                length: stored.length,
                members: stored.members,
                terms: stored.terms.chunks_exact(TERM_BYTES + 1).map(term).collect(),
            });
            rest = behind;
        }
        Ok(Self { entries })
    }

    /// Adds an entry, and answers the one of the same id that it replaces.
    pub(crate) fn put(&mut self, entry: Entry) -> Option<Entry> {
        match self.entries.iter_mut().find(|other| other.id == entry.id) {
            Some(other) => Some(std::mem::replace(other, entry)),
            None => {
                self.entries.push(entry);
                None
            }
        }
    }

    /// Removes the entry of an id.
    pub(crate) fn take(&mut self, id: &str) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.id == id)?;
        Some(self.entries.swap_remove(at))
    }
}
