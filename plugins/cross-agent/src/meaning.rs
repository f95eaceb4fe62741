//! Vectors of items, if the binding has a model: one bit for each dimension in memory, to find
//! candidates, and one byte for each in storage, to compute the similarity.

use memhost_sdk::embeddings::{self, Model};
use memhost_sdk::storage::{self, Batch};
use memhost_sdk::types::Error;

use crate::index::Doc;
use crate::store::{Store, key};
use crate::text::hash;

/// The longest part of a text that is embedded, in bytes. Models take less than that.
const MAX_TEXT: usize = 16 << 10;
/// Bytes in front of a vector: the model's hash, and the scale.
const HEAD: usize = 12;
/// How far the cosine of a vector of bytes may be from the exact one.
const ROUNDING: f32 = 1.0 / 127.0;

/// The vectors of a model in this instance.
#[derive(Debug, Default)]
pub(crate) struct Meaning {
    /// The name of the model.
    model: Option<u64>,
    /// The numbering of items that they were read for.
    numbering: u64,
    /// 64-bit words of a sketch.
    words: usize,
    /// By item.
    sketches: Vec<u64>,
    has: Vec<bool>,
    /// The vectors of made-up words, once they were needed.
    made_up: Vec<Vec<f32>>,
}

/// A question's vector.
pub(crate) struct Question {
    vector: Vec<f32>,
    sketch: Vec<u64>,
}

impl Meaning {
    /// Reads the vectors of a model, unless this was done. Items that were added to the index
    /// meanwhile have none.
    pub(crate) fn refresh(&mut self, store: &Store, model: &Model) -> Result<(), Error> {
        let wanted = hash(b"model", model.name.as_bytes());
        if self.model == Some(wanted) && self.numbering == store.numbering() {
            self.grow(store);
            return Ok(());
        }
        let (numbering, words) = (store.numbering(), (model.dimensions as usize).div_ceil(64));
        *self = Self { model: Some(wanted), numbering, words, ..Self::default() };
        self.grow(store);
        for entry in storage::scan(b"v\0".as_slice()) {
            let (key, value) = entry?;
            let id = std::str::from_utf8(&key[2..]).unwrap_or_default();
            if let (Some((doc, _)), Some(stored)) = (store.index.find(id), self.stored(&value)) {
                self.set(doc, stored.bytes);
            }
        }
        Ok(())
    }

    /// Embeds the items of these ids that have no vector, at most as many as `most`, and answers
    /// how many.
    pub(crate) fn embed(
        &mut self,
        store: &Store,
        docs: &[Doc],
        most: usize,
    ) -> Result<usize, Error> {
        let waiting = docs.iter().filter(|doc| !self.has[**doc as usize]).take(most);
        let (mut docs, mut ids, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for doc in waiting {
            let Some(known) = store.index.known(*doc) else { continue };
            let Some(item) = store.item(&known.id)? else { continue };
            docs.push(*doc);
            ids.push(item.id);
            texts.push(cut(item.content));
        }
        if texts.is_empty() {
            return Ok(0);
        }
        let vectors = embeddings::embed(&texts)?.vectors;
        let values: Vec<Vec<u8>> = vectors.iter().map(|vector| self.encode(vector)).collect();
        let mut batch = Batch::new();
        for (id, value) in ids.iter().zip(&values) {
            batch.put_raw(key(b'v', id), value.clone());
        }
        batch.apply()?;
        for (doc, value) in docs.iter().zip(&values) {
            self.set(*doc, &value[HEAD..]);
        }
        Ok(docs.len())
    }

    /// The items that have no vector.
    pub(crate) fn waiting(&self, store: &Store) -> Vec<Doc> {
        let docs = 0..Doc::try_from(self.has.len()).unwrap_or(Doc::MAX);
        docs.filter(|doc| !self.has[*doc as usize] && store.index.known(*doc).is_some()).collect()
    }

    /// A question's vector.
    pub(crate) fn question(&self, text: &str) -> Result<Question, Error> {
        let vectors = embeddings::embed(&[cut(text.to_owned())])?.vectors;
        let vector = vectors
            .into_iter()
            .next()
            .ok_or_else(|| Error::internal("the host returned no vector"))?;
        let mut sketch = vec![0; self.words];
        sketch_into(&mut sketch, vector.iter().map(|number| *number >= 0.0));
        Ok(Question { vector, sketch })
    }

    /// How similar an item must be to a question that shares no word with any item.
    pub(crate) fn nonsense_level(&mut self, question: &Question) -> Result<f32, Error> {
        if self.made_up.is_empty() {
            let texts = embeddings::MADE_UP.map(str::to_owned);
            self.made_up = embeddings::embed(&texts)?.vectors;
        }
        Ok(embeddings::nonsense_level(&question.vector, &self.made_up) + ROUNDING)
    }

    /// The `most` items with the most similar signs, among those that `admits` accepts.
    pub(crate) fn nearest(
        &self,
        question: &Question,
        most: usize,
        admits: impl Fn(Doc) -> bool,
    ) -> Vec<Doc> {
        let mut found: Vec<(u32, Doc)> = Vec::new();
        for (number, sketch) in self.sketches.chunks_exact(self.words.max(1)).enumerate() {
            let doc = Doc::try_from(number).unwrap_or(Doc::MAX);
            if self.has[number] && admits(doc) {
                let apart =
                    sketch.iter().zip(&question.sketch).map(|(a, b)| (a ^ b).count_ones()).sum();
                found.push((apart, doc));
            }
        }
        if found.len() > most {
            found.select_nth_unstable(most);
            found.truncate(most);
        }
        found.into_iter().map(|(_, doc)| doc).collect()
    }

    /// The cosine of an item and a question, from -1 to 1. None: the item has no vector of this
    /// model.
    pub(crate) fn similarity(&self, question: &Question, id: &str) -> Result<Option<f32>, Error> {
        let Some(value) = storage::get(key(b'v', id))? else { return Ok(None) };
        Ok(self.stored(&value).map(|stored| {
            let sum: f32 = stored
                .bytes
                .iter()
                .zip(&question.vector)
                .map(|(byte, number)| f32::from(byte.cast_signed()) * number)
                .sum();
            sum * stored.scale
        }))
    }

    fn grow(&mut self, store: &Store) {
        self.has.resize(store.index.slots(), false);
        self.sketches.resize(store.index.slots() * self.words, 0);
    }

    fn set(&mut self, doc: Doc, bytes: &[u8]) {
        let first = doc as usize * self.words;
        let signs = bytes.iter().map(|byte| byte.cast_signed() >= 0);
        sketch_into(&mut self.sketches[first..first + self.words], signs);
        self.has[doc as usize] = true;
    }

    fn encode(&self, vector: &[f32]) -> Vec<u8> {
        let largest = vector.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
        let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
        let mut value = Vec::with_capacity(HEAD + vector.len());
        value.extend_from_slice(&self.model.unwrap_or_default().to_le_bytes());
        value.extend_from_slice(&scale.to_le_bytes());
        #[allow(clippy::cast_possible_truncation, reason = "from -127 to 127")]
        value.extend(vector.iter().map(|number| ((number / scale).round() as i8).cast_unsigned()));
        value
    }

    fn stored<'a>(&self, value: &'a [u8]) -> Option<Stored<'a>> {
        let (model, rest) = value.split_first_chunk::<8>()?;
        let (scale, bytes) = rest.split_first_chunk::<4>()?;
        let is_ours = Some(u64::from_le_bytes(*model)) == self.model
            && bytes.len().div_ceil(64) == self.words;
        is_ours.then(|| Stored { scale: f32::from_le_bytes(*scale), bytes })
    }
}

struct Stored<'a> {
    scale: f32,
    bytes: &'a [u8],
}

fn sketch_into(sketch: &mut [u64], signs: impl Iterator<Item = bool>) {
    sketch.fill(0);
    for (at, is_positive) in signs.enumerate().filter(|(_, is_positive)| *is_positive) {
        if let Some(word) = sketch.get_mut(at / 64) {
            *word |= u64::from(is_positive) << (at % 64);
        }
    }
}

fn cut(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
    }
    text
}
