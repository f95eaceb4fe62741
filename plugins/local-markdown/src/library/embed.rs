//! Vectors of the records, if the binding has a model: one value in storage for each record, with
//! the state of the file that it belongs to. When a record is changed or removed, the same write
//! removes its value and its index entry.

use std::collections::BTreeSet;

use memhost_sdk::embeddings::{self, Model};
use memhost_sdk::storage::{self, Batch};
use memhost_sdk::types::Error;

use super::Library;
use crate::files::Stamp;
use crate::index::{DocId, Index};
use crate::meaning::{Meaning, Nearest, Vectors, decode, encode};
use crate::text::passage_starts;

const VECTORS: &[u8] = b"vectors/";
/// How many passages of a record get vectors. The others are found by their words only.
const PASSAGES: usize = 2_048;
/// The most bytes of a record's vectors, one byte for each number. They are one value in storage,
/// which holds 4 MiB.
const NUMBERS: usize = 3 << 20;
/// How many bytes of a passage are embedded. Models use less than this.
const PASSAGE_BYTES: usize = 8 << 10;
/// How far the cosine of a vector of bytes may be from the exact one.
const ROUNDING: f32 = 1.0 / 127.0;

/// The state of the vectors.
#[derive(Debug, Default)]
pub(super) struct Embedded {
    meaning: Meaning,
    /// Whether storage may hold vectors.
    has_stored: bool,
    /// Ids whose vectors are to be removed from storage.
    gone: BTreeSet<String>,
}

impl Embedded {
    /// Finds out whether vectors are stored. They are read when a model is available.
    pub(super) fn open() -> Result<Self, Error> {
        let has_stored = storage::scan(VECTORS).next().transpose()?.is_some();
        Ok(Self { has_stored, ..Self::default() })
    }

    /// The record is changed or removed.
    pub(super) fn drop(&mut self, doc: DocId, id: &str) {
        self.meaning.drop(doc);
        if self.has_stored {
            self.gone.insert(id.to_owned());
        }
    }

    /// Whether something is to be removed from storage.
    pub(super) fn has_gone(&self) -> bool {
        !self.gone.is_empty()
    }

    /// Keys that are to be removed from storage.
    pub(super) fn gone(&self) -> impl Iterator<Item = Vec<u8>> {
        self.gone.iter().map(|id| key(id))
    }

    /// They were removed.
    pub(super) fn left(&mut self) {
        self.gone.clear();
    }
}

/// The records to embed next, each with the number of passages to add.
struct Owner {
    doc: DocId,
    id: String,
    stamp: Stamp,
    passages: usize,
}

impl Library {
    /// The passages that are similar to a question. Empty if there is no model, there are no
    /// vectors or the model fails: then records are found by words only.
    pub(crate) fn nearest(
        &mut self,
        question: &str,
        admits: impl Fn(&Index, DocId) -> bool,
    ) -> Nearest {
        let found = self.open_model().and_then(|has_model| {
            if !has_model || self.embedded.meaning.passages() == 0 {
                return Ok(Nearest::default());
            }
            let vectors = embeddings::embed(&[cut(question).to_owned()])?.vectors;
            Ok(vectors
                .first()
                .map(|vector| self.embedded.meaning.nearest(vector, |doc| admits(&self.index, doc)))
                .unwrap_or_default())
        });
        found.unwrap_or_else(|error| {
            log::warn!("searched by words alone: {error:?}");
            Nearest::default()
        })
    }

    /// Keeps the records that are more similar to a question without a known word than made-up
    /// words are: nothing fits nonsense.
    pub(crate) fn beyond_nonsense(&mut self, question: &str, mut nearest: Nearest) -> Nearest {
        if nearest.records.is_empty() {
            return nearest;
        }
        let made_up = &mut self.embedded.meaning.made_up;
        let mut texts = vec![cut(question).to_owned()];
        if made_up.is_empty() {
            texts.extend(embeddings::MADE_UP.map(str::to_owned));
        }
        match embeddings::embed(&texts) {
            Ok(mut embedded) if !embedded.vectors.is_empty() => {
                let vector = embedded.vectors.remove(0);
                if made_up.is_empty() {
                    *made_up = embedded.vectors;
                }
                let level = embeddings::nonsense_level(&vector, made_up) + ROUNDING;
                nearest.records.retain(|near| near.cosine > level);
            }
            Ok(_) => {}
            Err(error) => {
                log::warn!("made-up words were not embedded, so nothing is left out: {error:?}");
            }
        }
        nearest
    }

    /// Computes up to `most` missing vectors. Answers whether more are missing.
    pub(crate) fn embed(&mut self, most: usize) -> Result<bool, Error> {
        if !self.open_model()? {
            return Ok(false);
        }
        let (mut texts, mut owners) = (Vec::new(), Vec::new());
        for doc in self.incomplete().collect::<Vec<_>>() {
            if texts.len() >= most {
                break;
            }
            let Some(id) = self.index.doc(doc).map(|doc| doc.id.to_string()) else { continue };
            let record = match self.read(&id) {
                Ok(Some(record)) => record,
                Ok(None) => continue,
                // The other records still get theirs.
                Err(error) => {
                    log::warn!("`{id}` is found by its words only: {error:?}");
                    continue;
                }
            };
            // If the file was changed, reading it has replaced the record in the index.
            let Some((doc, stamp)) = self.find(&id).map(|(doc, known)| (doc, known.stamp)) else {
                continue;
            };
            let starts = passage_starts(&record.text);
            let ends = starts.iter().skip(1).copied().chain([record.text.len()]);
            let missing = starts
                .iter()
                .zip(ends)
                .take(self.passages())
                .skip(self.embedded.meaning.count(doc));
            let before = texts.len();
            texts.extend(
                missing
                    .take(most - before)
                    .map(|(start, end)| cut(&record.text[*start..end]).to_owned()),
            );
            owners.push(Owner { doc, id, stamp, passages: texts.len() - before });
        }
        self.make(&texts, &owners)?;
        // If nothing could be computed, another call could not do it either.
        Ok(!texts.is_empty() && self.incomplete().next().is_some())
    }

    /// How many passages of a record get vectors.
    fn passages(&self) -> usize {
        let dimensions =
            self.embedded.meaning.model().map_or(1, |model| model.dimensions.max(1) as usize);
        PASSAGES.min(NUMBERS / dimensions)
    }

    /// The records that lack vectors.
    fn incomplete(&self) -> impl Iterator<Item = DocId> {
        let most = self.passages();
        let lacks = move |doc: &DocId| {
            let wanted = self.index.doc(*doc).map_or(0, |doc| doc.passages().min(most));
            self.embedded.meaning.count(*doc) < wanted
        };
        (0..DocId::try_from(self.index.slots()).unwrap_or(DocId::MAX)).filter(lacks)
    }

    fn make(&mut self, texts: &[String], owners: &[Owner]) -> Result<(), Error> {
        let Some(model) = self.embedded.meaning.model().cloned().filter(|_| !texts.is_empty())
        else {
            return Ok(());
        };
        let mut made = embeddings::embed(texts)?.vectors.into_iter();
        self.embedded.has_stored = true;
        let mut batch = Batch::new();
        let mut all = Vec::with_capacity(owners.len());
        for Owner { doc, id, stamp, passages } in owners {
            let before = self.embedded.meaning.get(*doc).cloned();
            let mut vectors = before.unwrap_or_else(|| Vectors::new(model.dimensions as usize));
            made.by_ref().take(*passages).for_each(|vector| vectors.push(&vector));
            let value = encode(&model.name, *stamp, &vectors).map_err(|error| {
                Error::internal(format!("the vectors of `{id}` cannot be written: {error}"))
            })?;
            batch.put_raw(key(id), value);
            self.embedded.gone.remove(id);
            all.push((*doc, vectors));
        }
        batch.apply()?;
        all.into_iter().for_each(|(doc, vectors)| self.embedded.meaning.set(doc, vectors));
        Ok(())
    }

    /// Whether there is a model. If so, its vectors are read.
    fn open_model(&mut self) -> Result<bool, Error> {
        let Some(model) = embeddings::model()? else { return Ok(false) };
        if !self.embedded.meaning.is_of(&model) {
            self.load_vectors(&model)?;
        }
        Ok(true)
    }

    fn load_vectors(&mut self, model: &Model) -> Result<(), Error> {
        self.embedded.meaning = Meaning::new(model.clone());
        if !self.embedded.has_stored {
            return Ok(());
        }
        for entry in storage::scan(VECTORS) {
            let (key, value) = entry?;
            let id = String::from_utf8_lossy(&key[VECTORS.len()..]).into_owned();
            if self.embedded.gone.contains(&id) {
                continue;
            }
            let Some((doc, stamp)) = self.find(&id).map(|(doc, known)| (doc, known.stamp)) else {
                // Its file was deleted meanwhile.
                self.embedded.gone.insert(id);
                continue;
            };
            if let Some((_, vectors)) = decode(&model.name, model.dimensions, &value)
                .filter(|(of_state, _)| *of_state == stamp)
            {
                self.embedded.meaning.set(doc, vectors);
            }
        }
        Ok(())
    }
}

fn key(id: &str) -> Vec<u8> {
    [VECTORS, id.as_bytes()].concat()
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(PASSAGE_BYTES)]
}
