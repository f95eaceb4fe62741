//! The reference provider: it keeps its records in `storage` and nothing in memory.

use memhost_sdk::storage::{Batch, Collection};
use memhost_sdk::types::*;
use memhost_sdk::{NoConfig, Provider};
use serde::{Deserialize, Serialize};

use crate::job::{Hook, Job, State};
use crate::record::{Filter, Partition, Record, Source, Standing, name, now};

/// The plainest provider that follows every rule of the contract. Its ranking is simple, and its
/// calls read all records.
#[derive(Debug)]
pub struct Reference {
    pub(crate) records: Collection<Record>,
    pub(crate) jobs: Collection<Job>,
    /// The answers to operations.
    pub(crate) answered: Collection<Answered>,
}

/// The answer to an operation, for its repetition.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct Answered {
    pub(crate) records: Vec<RecordId>,
    pub(crate) job: Option<String>,
}

pub(crate) fn operation_key(id: &str) -> String {
    format!("operation {id}")
}

impl Reference {
    /// The records that a scope may see and that do not wait, in the order of their ids.
    pub(crate) fn visible(
        &self,
        scope: &Scope,
    ) -> impl Iterator<Item = Result<(RecordId, Record), Error>> {
        self.all(scope)
            .filter(|entry| entry.as_ref().map_or(true, |(_, record)| record.standing.counts()))
    }

    /// The same with waiting and rejected records.
    pub(crate) fn all(
        &self,
        scope: &Scope,
    ) -> impl Iterator<Item = Result<(RecordId, Record), Error>> {
        self.records.iter("").filter_map(move |entry| match entry {
            Ok((key, record)) if record.partition.is_visible_in(scope) => {
                Some(Ok((String::from_utf8_lossy(&key).into_owned(), record)))
            }
            Ok(_) => None,
            Err(error) => Some(Err(error.into())),
        })
    }

    pub(crate) fn find(&self, id: &str, scope: &Scope) -> Result<Option<Record>, Error> {
        Ok(self.records.get(id)?.filter(|record| record.partition.is_visible_in(scope)))
    }

    /// The hits of a query, best first, each with its share of the query's words.
    pub(crate) fn hits(
        &self,
        request: &QueryRequest,
    ) -> Result<Vec<(f64, RecordId, Record)>, Error> {
        let filter = Filter::new(request.metadata_filter.as_deref())?;
        let terms = terms(&request.query);
        let mut hits = Vec::new();
        for entry in self.visible(&request.scope) {
            let (id, record) = entry?;
            let text = record.text.to_lowercase();
            let found = terms.iter().filter(|term| text.contains(*term)).count();
            if (found > 0 || terms.is_empty()) && filter.lets_through(&record) {
                hits.push((found as f64 / terms.len().max(1) as f64, id, record));
            }
        }
        hits.sort_by(|a, b| b.0.total_cmp(&a.0));
        hits.truncate(request.top_k as usize);
        Ok(hits)
    }

    fn repeated(&self, answered: Answered) -> Result<CaptureResponse, Error> {
        let mut jobs = Vec::new();
        if let Some(id) = answered.job {
            jobs.extend(self.jobs.get(&id)?.map(|job| job.shown(id)));
        }
        Ok(CaptureResponse { records: answered.records, jobs, usage: Vec::new() })
    }
}

/// The words of a text in lower case.
pub(crate) fn terms(query: &str) -> Vec<String> {
    query
        .split(|c: char| !c.is_alphanumeric())
        .filter(|term| !term.is_empty())
        .map(str::to_lowercase)
        .collect()
}

impl Provider for Reference {
    type Config = NoConfig;

    fn describe() -> Description {
        let description = Description::new(
            "reference",
            env!("CARGO_PKG_VERSION"),
            "Stores records and follows every rule of the contract",
        );
        let capabilities =
            Capabilities { provider_managed_extraction: true, async_extraction: true };
        Description { capabilities, max_concurrency: 4, ..description }
            .require(Permission::Storage(64 << 20), "Records are stored in it")
    }

    fn open(_: NoConfig) -> Result<Self, Error> {
        Ok(Self {
            records: Collection::new("records"),
            jobs: Collection::new("jobs"),
            answered: Collection::new("answered"),
        })
    }

    fn capture(&mut self, request: CaptureRequest) -> Result<CaptureResponse, Error> {
        let operation = operation_key(&request.operation_id);
        if let Some(answered) = self.answered.get(&operation)? {
            return self.repeated(answered);
        }
        let mut batch = Batch::new();
        let mut answered = Answered::default();
        if request.mode == CaptureMode::CaptureRecord {
            let id = name('r', &[&operation]);
            batch.put(&self.records, &id, &Record::captured(request)?)?;
            answered.records.push(id);
        } else {
            let id = name('j', &[&operation]);
            let job = Job {
                partition: Partition::of(&request.scope),
                hook: request.hook.as_ref().map(|hook| Hook(hook.hook_kind.clone())),
                source: Some(Source(request.source.clone())),
                submitted_at: now(),
                finished_at: None,
                state: State::Queued(Box::new(Record::captured(request)?)),
            };
            batch.put(&self.jobs, &id, &job)?;
            answered.job = Some(id);
        }
        batch.put(&self.answered, &operation, &answered)?;
        batch.apply()?;
        self.repeated(answered)
    }

    fn upsert_records(&mut self, request: UpsertRequest) -> Result<UpsertResponse, Error> {
        let operation = operation_key(&request.operation_id);
        if let Some(answered) = self.answered.get(&operation)? {
            return Ok(answered.records.into());
        }
        let (mut batch, mut ids, now) = (Batch::new(), Vec::new(), now());
        for (index, write) in request.records.into_iter().enumerate() {
            let id = write.id.unwrap_or_else(|| name('r', &[&operation, &index.to_string()]));
            let old = self.records.get(&id)?;
            if old.as_ref().is_some_and(|old| !old.partition.is_visible_in(&request.scope)) {
                return Err(Error::invalid(
                    &format!("records.{index}.id"),
                    "another partition has this id",
                ));
            }
            let record = Record {
                partition: Partition::of(&request.scope),
                standing: Standing::of(write.metadata.as_deref()),
                text: write.text,
                summary: write.summary,
                metadata: write.metadata,
                source: write.source.or_else(|| request.source.clone()).map(Source),
                created_at: write
                    .created_at
                    .or(old.map(|old| old.created_at))
                    .unwrap_or_else(|| now.clone()),
                updated_at: now.clone(),
                expires_at: write.expires_at,
            };
            batch.put(&self.records, &id, &record)?;
            ids.push(id);
        }
        batch.put(&self.answered, &operation, &Answered { records: ids.clone(), job: None })?;
        batch.apply()?;
        Ok(ids.into())
    }

    fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error> {
        let hits = self.hits(&request)?;
        let shown = hits
            .into_iter()
            .map(|(score, id, record)| record.snippet(id, Score::Similarity(score)));
        Ok(shown.collect::<Vec<_>>().into())
    }

    fn list_records(&mut self, request: ListRequest) -> Result<ListPage, Error> {
        let filter = Filter::new(request.metadata_filter.as_deref())?;
        let (mut items, mut continuation) = (Vec::<Snippet>::new(), Continuation::End);
        for entry in self.visible(&request.scope) {
            let (id, record) = entry?;
            // The cursor is the last id that was returned: it stays valid when that record is
            // removed.
            if request.cursor.as_ref().is_some_and(|cursor| id <= *cursor)
                || !filter.lets_through(&record)
            {
                continue;
            }
            if items.len() == request.limit as usize {
                continuation = items
                    .last()
                    .map_or(Continuation::End, |last| Continuation::Next(last.id.clone()));
                break;
            }
            items.push(record.snippet(id, Score::None));
        }
        Ok(ListPage { items, continuation, usage: Vec::new() })
    }

    fn get_record(&mut self, id: RecordId, scope: Scope) -> Result<GetResponse, Error> {
        let found = self.find(&id, &scope)?.filter(|record| record.standing.counts());
        Ok(found.map(|record| record.snippet(id, Score::None)).into())
    }

    fn forget(
        &mut self,
        ForgetRequest { ids, scope, .. }: ForgetRequest,
    ) -> Result<ForgetResponse, Error> {
        let (mut batch, mut outcomes) = (Batch::new(), Vec::<ForgetOutcome>::new());
        for id in ids {
            let again = outcomes.iter().any(|outcome| outcome.id == id);
            let effect = if again || self.find(&id, &scope)?.is_none() {
                ForgetEffect::NotFound
            } else {
                batch.delete(&self.records, &id);
                ForgetEffect::Hard
            };
            outcomes.push(ForgetOutcome { id, effect });
        }
        if !batch.is_empty() {
            batch.apply()?;
        }
        Ok(ForgetResponse { outcomes, usage: Vec::new() })
    }
}
