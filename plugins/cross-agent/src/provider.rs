//! The contract's calls.

mod ids;
mod jobs;
mod search;
mod transfer;
mod write_back;
mod writing;

use memhost_sdk::types::*;
use memhost_sdk::{Correction, Explain, Provider};
use serde_json::{Value, json};

use crate::config::{Config, schema};
use crate::index::{Asked, members};
use crate::item::{Item, check, object};
use crate::meaning::Meaning;
use crate::rank::Scratch;
use crate::store::Store;

/// The most bytes of text in an answer. This is well below the limit of a call.
const ANSWER_BYTES: usize = 8 << 20;

/// The provider.
pub struct CrossAgent {
    config: Config,
    store: Store,
    meaning: Meaning,
    scratch: Scratch,
}

impl Provider for CrossAgent {
    type Config = Config;

    fn describe() -> Description {
        let summary = "One memory for each project that every agent framework shares, by recency, \
                       relevance and confidence";
        let mut description = Description::new("cross-agent", env!("CARGO_PKG_VERSION"), summary);
        "Cross-Agent".clone_into(&mut description.name);
        description.config_schema = Some(schema());
        description.capabilities.provider_managed_extraction = true;
        description.capabilities.async_extraction = true;
        description
            .require(Permission::Storage(1 << 30), "Items and their index are stored in it")
            .prefer(Permission::Embeddings, "Items are found by their meaning, too")
            .prefer(Permission::Clock, "The times of items are exact")
    }

    fn check_config(config: &Config) -> Result<(), Vec<ConfigError>> {
        config.check()
    }

    fn open(config: Config) -> Result<Self, Error> {
        let store = Store::new(&config);
        Ok(Self { config, store, meaning: Meaning::default(), scratch: Scratch::default() })
    }

    fn capture(&mut self, request: CaptureRequest) -> Result<CaptureResponse, Error> {
        self.store.refresh()?;
        self.write_capture(request)
    }

    fn upsert_records(&mut self, request: UpsertRequest) -> Result<UpsertResponse, Error> {
        self.store.refresh()?;
        self.write_all(request)
    }

    fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error> {
        self.store.refresh()?;
        let found = self.search(&request)?;
        let (mut snippets, mut bytes) = (Vec::with_capacity(found.len()), 0);
        for (hit, item) in found {
            bytes += item.content.len();
            if bytes > ANSWER_BYTES && !snippets.is_empty() {
                break;
            }
            let score = Score::Rank(f64::from(hit.score));
            snippets.push(Snippet { score, ..item.into_snippet(&request.scope.company_id) });
        }
        Ok(snippets.into())
    }

    fn list_records(&mut self, request: ListRequest) -> Result<ListPage, Error> {
        self.store.refresh()?;
        let filter = object("metadataFilter", request.metadata_filter.as_deref())?;
        let wanted = members(filter.as_ref());
        let seen = self.store.index.places.seen(&Asked::looking(&request.scope));
        let index = &self.store.index;
        let admitted = index
            .behind(request.cursor.as_deref())
            .filter(|(_, known)| seen[known.place as usize] && index.has_members(known, &wanted));
        let (mut items, mut bytes, mut last, mut continuation) =
            (Vec::new(), 0, None, Continuation::End);
        for (_, known) in admitted {
            if items.len() == request.limit as usize || bytes > ANSWER_BYTES {
                continuation = last.map_or(Continuation::End, Continuation::Next);
                break;
            }
            if let Some(item) = self.store.item(&known.id)? {
                bytes += item.content.len();
                items.push(item.into_snippet(&request.scope.company_id));
            }
            last = Some(known.id.to_string());
        }
        Ok(ListPage { items, continuation, usage: Vec::new() })
    }

    fn get_record(&mut self, id: RecordId, scope: Scope) -> Result<GetResponse, Error> {
        self.store.refresh()?;
        let found = self.visible(&id, &scope)?;
        Ok(found.map(|item| item.into_snippet(&scope.company_id)).into())
    }

    fn forget(&mut self, request: ForgetRequest) -> Result<ForgetResponse, Error> {
        self.store.refresh()?;
        let ForgetRequest { ids, scope, .. } = request;
        let (mut gone, mut outcomes): (Vec<Item>, _) = (Vec::new(), Vec::with_capacity(ids.len()));
        for id in ids {
            let is_new = !gone.iter().any(|item| item.id == id);
            let effect = match self.visible(&id, &scope)?.filter(|_| is_new) {
                Some(item) => {
                    gone.push(item);
                    ForgetEffect::Hard
                }
                None => ForgetEffect::NotFound,
            };
            outcomes.push(ForgetOutcome { id, effect });
        }
        self.store.change(&[], &gone)?;
        Ok(ForgetResponse { outcomes, usage: Vec::new() })
    }
}

impl Correction for CrossAgent {
    fn correct(&mut self, request: CorrectRequest) -> Result<CorrectResponse, Error> {
        self.store.refresh()?;
        let Patch::Replacement(write) = request.patch else {
            let message = "cross-agent cannot follow instructions; send the corrected record";
            return Err(Error::unsupported(message));
        };
        let Some(mut item) = self.visible(&request.id, &request.scope)? else {
            return Err(Error::NotFound(format!(
                "there is no record `{}` in this scope",
                request.id
            )));
        };
        item.content = write.text;
        // A summary of the text before would keep what was corrected.
        item.summary = write.summary;
        if let Some(metadata) = object("patch.record.metadata", write.metadata.as_deref())? {
            check("patch.record.metadata", &metadata)?;
            item.metadata = Some(metadata);
        }
        item.source_ref = write.source.map(Into::into).or(item.source_ref);
        item.created_at = write.created_at.unwrap_or(item.created_at);
        item.expires_at = write.expires_at.or(item.expires_at);
        item.updated_at = now().to_string();
        // The time of the last change is replaced.
        if let Some(said) =
            item.metadata.as_mut().and_then(|metadata| metadata.get_mut("updatedAt"))
        {
            *said = Value::String(item.updated_at.clone());
        }
        self.write(&[item])?;
        Ok(CorrectResponse { record_id: request.id, superseded: None, usage: Vec::new() })
    }
}

impl Explain for CrossAgent {
    fn explain_query(&mut self, request: QueryRequest) -> Result<Explanation, Error> {
        self.store.refresh()?;
        let found = self.search(&request)?;
        let hits = found.into_iter().map(|(hit, item)| {
            let parts = [
                Some(("words", hit.words)),
                hit.meaning.map(|meaning| ("meaning", meaning)),
                Some(("coverage", hit.coverage)),
                Some(("relevance", hit.relevance)),
                Some(("recency", hit.recency)),
                Some(("confidence", hit.confidence)),
            ];
            let part = |(name, value): (&str, f32)| Contribution {
                name: name.to_owned(),
                value: f64::from(value),
            };
            HitTrace { id: item.id, contributions: parts.into_iter().flatten().map(part).collect() }
        });
        let (weights, days) = (&self.config.weights, self.config.half_life_days);
        let query = json!({
            "score": "relevance × recency × confidence",
            "weights": {"words": weights.words, "meaning": weights.meaning,
                "recency": weights.recency,
                "confidence": weights.confidence},
            "halfLifeDays": days,
            "project": request.scope.project_id,
        });
        Ok(Explanation { query: query.to_string(), hits: hits.collect() })
    }
}

impl CrossAgent {
    /// An item that a scope may see.
    fn visible(&self, id: &str, scope: &Scope) -> Result<Option<Item>, Error> {
        let index = &self.store.index;
        match index.find(id) {
            Some((_, known)) if index.places.sees(known.place, &Asked::looking(scope)) => {
                self.store.item(id)
            }
            _ => Ok(None),
        }
    }
}

fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}
