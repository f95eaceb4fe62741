//! A memory provider: records in the binding's storage, found by the words that they share with the
//! question.
//!
//! Start here and change what you like; `tests/provider.rs` tests it. What each call must do is
//! stated in `provider.wit`, in the folder `wit` beside the SDK.

mod record;

use memhost_sdk::storage::{Batch, Collection};
use memhost_sdk::{Provider, types::*};
use serde::Deserialize;

use crate::record::{Filter, Record};

/// The binding's configuration: what an operator may set. A field with a wrong name or type is
/// refused, and the error names it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Config {
    /// Words that a query ignores, in lower case.
    pub ignored_words: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        let words = [
            "a", "an", "and", "are", "do", "does", "in", "is", "of", "the", "to", "what", "where",
            "who",
        ];
        Self { ignored_words: words.map(str::to_owned).to_vec() }
    }
}

/// The provider. What it holds in memory is a cache: the host drops an instance when it likes.
#[derive(Debug)]
pub struct Memory {
    config: Config,
    records: Collection<Record>,
}

impl Memory {
    /// The records that a scope may see, in the order of their ids.
    fn visible(&self, scope: &Scope) -> impl Iterator<Item = Result<(RecordId, Record), Error>> {
        self.records.iter("").filter_map(move |entry| match entry {
            Ok((id, record)) => record
                .is_visible_in(scope)
                .then(|| Ok((String::from_utf8_lossy(&id).into(), record))),
            Err(error) => Some(Err(error.into())),
        })
    }

    /// One record, if the scope may see it.
    fn find(&self, id: &str, scope: &Scope) -> Result<Option<Record>, Error> {
        Ok(self.records.get(id)?.filter(|record| record.is_visible_in(scope)))
    }

    /// The words of a text that are not ignored, in lower case.
    fn words(&self, text: &str) -> Vec<String> {
        let words = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase);
        words.filter(|word| !self.config.ignored_words.contains(word)).collect()
    }
}

impl Provider for Memory {
    type Config = Config;

    fn describe() -> Description {
        let schema = serde_json::json!({
            "type": "object",
            "additionalProperties": false,
            "properties": { "ignoredWords": { "type": "array", "items": { "type": "string" } } },
        });
        let description = Description::new(
            "memory-template",
            env!("CARGO_PKG_VERSION"),
            "Finds records by their words",
        );
        Description { config_schema: Some(schema.to_string()), ..description }
            .require(Permission::Storage(64 << 20), "The records are kept in it")
    }

    fn check_config(config: &Config) -> Result<(), Vec<ConfigError>> {
        let is_wrong = |word: &String| *word != word.to_lowercase();
        let wrong = config.ignored_words.iter().position(is_wrong).map(|index| ConfigError {
            pointer: format!("/ignoredWords/{index}"),
            message: "is not in lower case, so it would never be met".to_owned(),
        });
        wrong.map_or(Ok(()), |error| Err(vec![error]))
    }

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Self { config, records: Collection::new("records") })
    }

    fn capture(&mut self, request: CaptureRequest) -> Result<CaptureResponse, Error> {
        // The same event comes with the same id, so that a repeated delivery makes no second
        // record. The record that there is stays: it may have been corrected meanwhile.
        let id = request.operation_id.clone();
        if self.records.get(&id)?.is_none() {
            self.records.put(&id, &Record::captured(request)?)?;
        }
        Ok(vec![id].into())
    }

    fn upsert_records(&mut self, request: UpsertRequest) -> Result<UpsertResponse, Error> {
        let (mut batch, mut ids) = (Batch::new(), Vec::new());
        for (index, write) in request.records.iter().enumerate() {
            let id =
                write.id.clone().unwrap_or_else(|| format!("{}-{index}", request.operation_id));
            if self.records.get(&id)?.is_some_and(|old| !old.is_visible_in(&request.scope)) {
                return Err(Error::invalid(
                    &format!("records.{index}.id"),
                    "another partition has this id",
                ));
            }
            batch.put(&self.records, &id, &Record::written(write, &request))?;
            ids.push(id);
        }
        // All of them or none.
        batch.apply()?;
        Ok(ids.into())
    }

    fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error> {
        let filter = Filter::new(request.metadata_filter.as_deref())?;
        let asked = self.words(&request.query);
        // An empty question matches all records; a question of ignored words only finds nothing.
        let is_open = request.query.trim().is_empty();
        let (mut hits, mut looked_at) = (Vec::new(), 0);
        for entry in self.visible(&request.scope) {
            let (id, record) = entry?;
            looked_at += 1;
            let words = self.words(&record.text);
            let met = asked.iter().filter(|word| words.contains(word)).count();
            if (met > 0 || is_open) && filter.lets_through(&record) {
                hits.push((met as f64 / asked.len().max(1) as f64, id, record));
            }
        }
        log::info!("{} of {looked_at} records have a word of {asked:?}", hits.len());
        hits.sort_by(|(a, a_id, _), (b, b_id, _)| b.total_cmp(a).then_with(|| a_id.cmp(b_id)));
        hits.truncate(request.top_k as usize);
        let snippets: Vec<Snippet> = hits
            .into_iter()
            .map(|(share, id, record)| record.snippet(id, Score::Rank(share)))
            .collect();
        Ok(snippets.into())
    }

    fn list_records(&mut self, request: ListRequest) -> Result<ListPage, Error> {
        let filter = Filter::new(request.metadata_filter.as_deref())?;
        let mut page = ListPage::default();
        for entry in self.visible(&request.scope) {
            let (id, record) = entry?;
            // The cursor is the last id of the page before: it stays valid while others write and
            // forget.
            if request.cursor.as_ref().is_some_and(|last| id <= *last)
                || !filter.lets_through(&record)
            {
                continue;
            }
            if page.items.len() == request.limit as usize {
                page.continuation = page
                    .items
                    .last()
                    .map_or(Continuation::End, |last| Continuation::Next(last.id.clone()));
                break;
            }
            page.items.push(record.snippet(id, Score::None));
        }
        Ok(page)
    }

    fn get_record(&mut self, id: RecordId, scope: Scope) -> Result<GetResponse, Error> {
        Ok(self.find(&id, &scope)?.map(|record| record.snippet(id, Score::None)).into())
    }

    fn forget(&mut self, request: ForgetRequest) -> Result<ForgetResponse, Error> {
        let (mut batch, mut outcomes) = (Batch::new(), Vec::<ForgetOutcome>::new());
        for id in request.ids {
            let is_named_before = outcomes.iter().any(|outcome| outcome.id == id);
            let effect = match self.find(&id, &request.scope)? {
                Some(_) if !is_named_before => {
                    batch.delete(&self.records, &id);
                    ForgetEffect::Hard
                }
                _ => ForgetEffect::NotFound,
            };
            outcomes.push(ForgetOutcome { id, effect });
        }
        batch.apply()?;
        Ok(ForgetResponse { outcomes, usage: Vec::new() })
    }
}

memhost_sdk::export!(Memory);
