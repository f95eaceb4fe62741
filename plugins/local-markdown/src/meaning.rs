//! Vectors of the records' passages, if the binding has a model. They are computed in the
//! background, stored beside the index, and removed with their record.

mod nearest;
mod vectors;

pub(crate) use nearest::{Near, Nearest};
pub(crate) use vectors::{Vectors, decode, encode};

use memhost_sdk::embeddings::Model;

use crate::index::DocId;

/// The vectors of one model, by record.
#[derive(Debug, Default)]
pub(crate) struct Meaning {
    model: Option<Model>,
    of: Vec<Option<Vectors>>,
    /// The sum of all vectors. A question's cosine with it is the sum of its cosines with all of
    /// them.
    sum: Vec<f64>,
    passages: usize,
    /// The vectors of made-up words, once they were needed.
    pub(crate) made_up: Vec<Vec<f32>>,
}

impl Meaning {
    /// No vectors of a model yet.
    pub(crate) fn new(model: Model) -> Self {
        let sum = vec![0.0; model.dimensions as usize];
        Self { model: Some(model), sum, ..Self::default() }
    }

    /// Whether the vectors are of this model.
    pub(crate) fn is_of(&self, model: &Model) -> bool {
        self.model
            .as_ref()
            .is_some_and(|own| (&own.name, own.dimensions) == (&model.name, model.dimensions))
    }

    /// The name of the model.
    pub(crate) fn model(&self) -> Option<&Model> {
        self.model.as_ref()
    }

    /// How many of a record's passages, from the first, have vectors.
    pub(crate) fn count(&self, doc: DocId) -> usize {
        self.get(doc).map_or(0, Vectors::len)
    }

    /// How many vectors there are.
    pub(crate) fn passages(&self) -> usize {
        self.passages
    }

    /// A record's vectors.
    pub(crate) fn get(&self, doc: DocId) -> Option<&Vectors> {
        self.of.get(doc as usize)?.as_ref()
    }

    /// Replaces the vectors of a record.
    pub(crate) fn set(&mut self, doc: DocId, vectors: Vectors) {
        self.drop(doc);
        if self.of.len() <= doc as usize {
            self.of.resize_with(doc as usize + 1, || None);
        }
        self.passages += vectors.len();
        vectors.add_to(&mut self.sum, 1.0);
        self.of[doc as usize] = Some(vectors);
    }

    /// Removes the vectors of a record.
    pub(crate) fn drop(&mut self, doc: DocId) {
        if let Some(vectors) = self.of.get_mut(doc as usize).and_then(Option::take) {
            self.passages -= vectors.len();
            vectors.add_to(&mut self.sum, -1.0);
        }
    }
}
