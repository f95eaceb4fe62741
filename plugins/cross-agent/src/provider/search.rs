//! Queries.

use memhost_sdk::types::{Error, Intent, QueryRequest};
use memhost_sdk::{embeddings, log};

use super::{CrossAgent, now};
use crate::index::{Asked, members};
use crate::item::{Item, object};
use crate::meaning::Question;
use crate::rank::{Ask, Hit};

impl CrossAgent {
    /// The hits, best first.
    pub(super) fn search(&mut self, request: &QueryRequest) -> Result<Vec<(Hit, Item)>, Error> {
        let filter = object("metadataFilter", request.metadata_filter.as_deref())?;
        let asked = Asked::recalling(&request.scope, filter.as_ref());
        let terms = self.store.analyzer.question(&request.query);
        let ask = Ask {
            question: if terms.is_empty() { None } else { self.question(&request.query) },
            terms,
            seen: self.store.index.places.seen(&asked),
            members: members(filter.as_ref()),
            now: now().as_microsecond(),
            top: request.top_k.max(1) as usize,
            config: &self.config,
        };
        let mut hits = ask.best(&self.store, &self.meaning, &mut self.scratch)?;
        // Every item is about equally dissimilar to nonsense.
        if let Some(question) = &ask.question
            && !self.scratch.has_words()
        {
            match self.meaning.nonsense_level(question) {
                Ok(level) => hits.retain(|hit| hit.cosine.is_none_or(|cosine| cosine > level)),
                Err(error) => {
                    log::warn!(
                        "made-up words were not embedded, so nothing is left out: {error:?}"
                    );
                }
            }
        }
        // At the start of a run nobody has asked for anything yet: a few items with a word of a
        // fixed query must not take the place of all others.
        if request.intent == Intent::AgentPreamble {
            ask.fill(&self.store, &mut hits);
        }
        let mut found = Vec::with_capacity(hits.len());
        for hit in hits {
            let Some(known) = self.store.index.known(hit.doc) else { continue };
            if let Some(item) = self.store.item(&known.id)? {
                found.push((hit, item));
            }
        }
        Ok(found)
    }

    /// The question's vector. None without a model, or if it fails: then items are found by words
    /// only.
    fn question(&mut self, text: &str) -> Option<Question> {
        if self.config.weights.meaning == 0.0 {
            return None;
        }
        let found = embeddings::model().map_err(Error::from).and_then(|model| {
            let Some(model) = model else { return Ok(None) };
            self.meaning.refresh(&self.store, &model)?;
            self.meaning.question(text).map(Some)
        });
        found.unwrap_or_else(|error| {
            log::warn!(
                "the question was not embedded, so items are found by words only: {error:?}"
            );
            None
        })
    }
}
