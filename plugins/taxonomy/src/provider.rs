//! The contract's calls.

mod capture;
mod jobs;
mod reviewing;
mod search;
mod transfer;

use jiff::Timestamp;
use memhost_sdk::storage::Batch;
use memhost_sdk::types::*;
use memhost_sdk::{Correction, Explain, Profile, Provider};
use serde_json::{Map, Value, json};

use crate::clock::now;
use crate::config::{Config, schema};
use crate::id;
use crate::item::{Item, Status};
use crate::place::{Place, Source};
use crate::store::{Held, Store};
use crate::words::stems;
use crate::write::{self, Writing, object};
use jobs::Jobs;

/// The most bytes of text and metadata in an answer. This is well below the limit of a call.
const ANSWER_BYTES: usize = 8 << 20;

/// The size of a snippet in an answer, in bytes.
fn size(snippet: &Snippet) -> usize {
    snippet.text.len() + snippet.metadata.as_ref().map_or(0, String::len)
}

/// The provider.
#[derive(Debug)]
pub struct Taxonomy {
    config: Config,
    store: Store,
    jobs: Jobs,
}

impl Provider for Taxonomy {
    type Config = Config;

    fn describe() -> Description {
        let mut description = Description::new(
            "taxonomy",
            env!("CARGO_PKG_VERSION"),
            "Memory of eleven kinds, extracted by named rules, with review and lifetimes",
        );
        "Memory taxonomy".clone_into(&mut description.name);
        description.config_schema = Some(schema());
        description.capabilities.provider_managed_extraction = true;
        description.capabilities.async_extraction = true;
        description.require(
            Permission::Storage(256 << 20),
            "Items, jobs and texts that wait for extraction are stored in it",
        )
    }

    fn check_config(config: &Config) -> Result<(), Vec<ConfigError>> {
        config.check()
    }

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Self { config, store: Store::new(), jobs: Jobs::new() })
    }

    fn capture(&mut self, request: CaptureRequest) -> Result<CaptureResponse, Error> {
        match request.mode {
            // Only the job is stored, so that the answer is quick.
            CaptureMode::CaptureResidue => self.queue(&request),
            CaptureMode::CaptureRecord => {
                self.store.refresh()?;
                self.keep(&request)
            }
        }
    }

    fn upsert_records(&mut self, request: UpsertRequest) -> Result<UpsertResponse, Error> {
        self.store.refresh()?;
        let source = request.source.as_ref().map(Source::from);
        let ids = {
            let said = Said { source: source.as_ref(), at: None };
            self.write_all(&request.operation_id, &request.scope, said, request.records, "records")?
        };
        Ok(ids.into())
    }

    fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error> {
        self.store.refresh()?;
        let hits = self.search(&request)?;
        let company = &request.scope.company_id;
        let snippet = |hit: &crate::rank::Hit| {
            let held = self.store.held(&hit.id)?;
            Some(held.item.snippet(Score::Rank(hit.score), company, held.used))
        };
        let mut bytes = 0;
        let fits = |snippet: &Snippet| {
            bytes += size(snippet);
            bytes <= ANSWER_BYTES
        };
        let snippets: Vec<Snippet> = hits.iter().filter_map(snippet).take_while(fits).collect();
        self.count_uses(&hits)?;
        Ok(snippets.into())
    }

    fn list_records(&mut self, request: ListRequest) -> Result<ListPage, Error> {
        self.store.refresh()?;
        let filter = object("metadataFilter", request.metadata_filter.as_deref())?;
        let now = now();
        let fits = |held: &&Held| {
            held.item.counts(now)
                && held.item.is_visible(&request.scope)
                && filter.as_ref().is_none_or(|filter| matches(&held.item, filter))
        };
        self.page(&request.scope, request.cursor.as_deref(), request.limit, fits)
    }

    fn get_record(&mut self, id: RecordId, scope: Scope) -> Result<GetResponse, Error> {
        self.store.refresh()?;
        let now = now();
        let item = self.visible(&id, &scope).filter(|item| item.counts(now));
        let used = self.store.held(&id).and_then(|held| held.used);
        Ok(item.map(|item| item.snippet(Score::None, &scope.company_id, used)).into())
    }

    fn forget(&mut self, request: ForgetRequest) -> Result<ForgetResponse, Error> {
        self.store.refresh()?;
        let ForgetRequest { ids, scope, .. } = request;
        let (mut gone, mut outcomes) = (Vec::new(), Vec::with_capacity(ids.len()));
        for id in ids {
            let effect = match self.visible(&id, &scope).filter(|_| !gone.contains(&id)) {
                Some(_) => {
                    gone.push(id.clone());
                    ForgetEffect::Hard
                }
                None => ForgetEffect::NotFound,
            };
            outcomes.push(ForgetOutcome { id, effect });
        }
        if !gone.is_empty() {
            self.store.write(Batch::new(), Vec::new(), &gone)?;
        }
        Ok(ForgetResponse { outcomes, usage: Vec::new() })
    }
}

/// Where what is written comes from, and when it was said.
#[derive(Debug, Clone, Copy)]
struct Said<'a> {
    source: Option<&'a Source>,
    at: Option<Timestamp>,
}

impl Correction for Taxonomy {
    fn correct(&mut self, request: CorrectRequest) -> Result<CorrectResponse, Error> {
        self.store.refresh()?;
        let Patch::Replacement(write) = request.patch else {
            return Err(Error::unsupported(
                "taxonomy cannot follow instructions; send the corrected record",
            ));
        };
        let now = now();
        let Some(before) =
            self.visible(&request.id, &request.scope).filter(|item| item.counts(now)).cloned()
        else {
            return Err(Error::NotFound(format!(
                "there is no record `{}` in this scope",
                request.id
            )));
        };
        if before.operation != request.operation_id {
            // Missing members of the metadata stay: a correction of the text does not change the
            // kind.
            let metadata = match write.metadata {
                Some(metadata) => Some(metadata),
                None => {
                    let mut kept = before.metadata.clone().unwrap_or_default();
                    kept.insert("kind".to_owned(), before.kind.name().into());
                    kept.insert("tags".to_owned(), before.tags.clone().into());
                    Some(Value::Object(kept).to_string())
                }
            };
            // A summary of the text before would keep what was corrected.
            let write = RecordWrite { metadata, ..write };
            let writing = Writing {
                config: &self.config,
                operation: &request.operation_id,
                place: &before.place,
                source: before.source.as_ref(),
                now,
                triggered_at: None,
            };
            let has_time = write.created_at.is_some();
            let mut item = write::item(&writing, request.id.clone(), write, "patch.record")?;
            if !has_time {
                item.created_at = before.created_at;
            }
            // A correction takes nothing out of its project.
            item.is_bound |= before.is_bound;
            self.store.write(Batch::new(), vec![item], &[])?;
        }
        Ok(CorrectResponse { record_id: request.id, superseded: None, usage: Vec::new() })
    }
}

impl Explain for Taxonomy {
    fn explain_query(&mut self, request: QueryRequest) -> Result<Explanation, Error> {
        self.store.refresh()?;
        let hits = self.search(&request)?;
        let kinds: Map<String, Value> =
            hits.iter().map(|hit| (hit.id.clone(), hit.kind.name().into())).collect();
        let hits = hits
            .into_iter()
            .map(|hit| HitTrace { contributions: hit.parts.contributions(), id: hit.id });
        let query = json!({"stems": stems(&request.query), "kinds": kinds});
        Ok(Explanation { query: query.to_string(), hits: hits.collect() })
    }
}

impl Profile for Taxonomy {
    fn get_profile(&mut self, scope: Scope) -> Result<ProfileResponse, Error> {
        self.store.refresh()?;
        Ok(ProfileResponse { summary: self.summary(&scope), usage: Vec::new() })
    }
}

impl Taxonomy {
    /// An item that a scope may see, whatever its status.
    fn visible(&self, id: &str, scope: &Scope) -> Option<&Item> {
        self.store.get(id).filter(|item| item.status != Status::Rejected && item.is_visible(scope))
    }

    /// Writes records, all or none, and answers their ids. `field` is their place in the request.
    fn write_all(
        &mut self,
        operation: &str,
        scope: &Scope,
        said: Said,
        records: Vec<RecordWrite>,
        field: &str,
    ) -> Result<Vec<RecordId>, Error> {
        let (place, now) = (Place::from(scope), now());
        let writing = Writing {
            config: &self.config,
            operation,
            place: &place,
            source: said.source,
            now,
            // A clock that goes ahead must not make an item younger than new.
            triggered_at: said.at.map(|at| at.min(now)),
        };
        let (mut items, mut ids): (Vec<Item>, Vec<RecordId>) = (Vec::new(), Vec::new());
        for (number, record) in records.into_iter().enumerate() {
            let (is_own, has_time) = (record.id.is_none(), record.created_at.is_some());
            let id = record.id.clone().unwrap_or_else(|| id::written(operation, number));
            let field = format!("{field}.{number}");
            let before = self.store.get(&id);
            if before.is_some_and(|item| !item.is_visible(scope)) {
                return Err(Error::invalid(
                    &format!("{field}.id"),
                    format!(
                        "`{id}` is the id of a record that this scope may not see; choose another \
                         id"
                    ),
                ));
            }
            let mut item = write::item(&writing, id.clone(), record, &field)?;
            ids.push(id);
            // The same operation again: later changes of its records stay, such as a person's
            // decision.
            if before.is_some_and(|item| is_own || item.operation == operation) {
                continue;
            }
            if !has_time {
                item.created_at = before.map_or(now, |item| item.created_at);
            }
            // If an id occurs twice, the later record wins.
            match items.iter_mut().find(|other| other.id == item.id) {
                Some(other) => *other = item,
                None => items.push(item),
            }
        }
        if !items.is_empty() {
            self.store.write(Batch::new(), items, &[])?;
        }
        Ok(ids)
    }

    /// One page of the items that fit, in the order of their ids.
    fn page(
        &self,
        scope: &Scope,
        cursor: Option<&str>,
        limit: u32,
        fits: impl Fn(&&Held) -> bool,
    ) -> Result<ListPage, Error> {
        let last = cursor.map(|cursor| {
            id::read_cursor(cursor).ok_or_else(|| {
                Error::invalid(
                    "cursor",
                    format!("`{cursor}` is not a cursor of taxonomy; start again without one"),
                )
            })
        });
        let (mut items, mut bytes) = (Vec::new(), 0);
        let mut continuation = Continuation::End;
        for held in self.store.behind(last.transpose()?).filter(fits) {
            if items.len() >= limit as usize || bytes > ANSWER_BYTES {
                continuation = items.last().map_or(Continuation::End, |last: &Snippet| {
                    Continuation::Next(id::cursor(&last.id))
                });
                break;
            }
            let snippet = held.item.snippet(Score::None, &scope.company_id, held.used);
            bytes += size(&snippet);
            items.push(snippet);
        }
        Ok(ListPage { items, continuation, usage: Vec::new() })
    }
}

/// Whether an item's metadata has every member of a filter with an equal value.
fn matches(item: &Item, filter: &Map<String, Value>) -> bool {
    let shown = item.shown(None);
    filter.iter().all(|(name, value)| shown.get(name) == Some(value))
}
