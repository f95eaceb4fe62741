// Without inner attributes: the examples of the documentation include this file.

use memhost_sdk::storage::{Batch, Collection};
use memhost_sdk::{Provider, types::*};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A note as it is stored, under its id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Note {
    /// The text of the record.
    pub text: String,
    /// It waits for a person and is not found.
    pub pending: bool,
    /// The agent, the subject and the namespace that it was written for.
    partition: [Option<String>; 3],
    summary: Option<String>,
    metadata: Option<String>,
    source: Option<SourceRef>,
}

impl Note {
    /// A note of a scope.
    pub fn of(scope: &Scope, text: impl Into<String>) -> Self {
        let partition = [scope.agent_id.clone(), scope.subject_id.clone(), scope.namespace.clone()];
        Self { text: text.into(), partition, ..Self::default() }
    }

    /// Whether the scope has no other agent, subject or namespace than the note was written for.
    pub fn is_visible_in(&self, scope: &Scope) -> bool {
        let asked = [&scope.agent_id, &scope.subject_id, &scope.namespace];
        let fits = |(own, asked): (&Option<String>, &Option<String>)| {
            own.is_none() || asked.is_none() || own == asked
        };
        self.partition.iter().zip(asked).all(fits)
    }

    fn snippet(self, id: RecordId) -> Snippet {
        let Self { text, summary, metadata, source, .. } = self;
        Snippet { summary, metadata, source, ..Snippet::new(id, text) }
    }

    /// Whether the metadata has every member of the filter with an equal value.
    fn has(&self, filter: &Option<Map<String, Value>>) -> bool {
        let own: Map<String, Value> = self
            .metadata
            .as_deref()
            .and_then(|json| serde_json::from_str(json).ok())
            .unwrap_or_default();
        filter.iter().flatten().all(|(name, value)| own.get(name) == Some(value))
    }
}

fn filter(json: Option<String>) -> Result<Option<Map<String, Value>>, Error> {
    let parsed = json.map(|json| serde_json::from_str(&json)).transpose();
    parsed.map_err(|error| Error::invalid("metadataFilter", error.to_string()))
}

/// The provider.
#[derive(Debug)]
pub struct Notes {
    /// All notes of the binding.
    pub notes: Collection<Note>,
}

impl Notes {
    /// The notes that a scope sees, by id. Companies never share a binding.
    pub fn all(&self, scope: &Scope) -> Result<Vec<(RecordId, Note)>, Error> {
        let mut all = Vec::new();
        for entry in self.notes.iter("") {
            let (id, note) = entry?;
            if note.is_visible_in(scope) {
                all.push((String::from_utf8_lossy(&id).into_owned(), note));
            }
        }
        Ok(all)
    }

    /// A note that a scope sees.
    pub fn find(&self, id: &str, scope: &Scope) -> Result<Option<Note>, Error> {
        Ok(self.notes.get(id)?.filter(|note| note.is_visible_in(scope)))
    }
}

impl Provider for Notes {
    type Config = memhost_sdk::NoConfig;

    fn describe() -> Description {
        Description::new("notes", "1.0.0", "Notes, found by their words")
            .require(Permission::Storage(16 << 20), "The notes are kept here")
    }

    fn open(_: Self::Config) -> Result<Self, Error> {
        Ok(Self { notes: Collection::new("notes") })
    }

    fn capture(&mut self, request: CaptureRequest) -> Result<CaptureResponse, Error> {
        let CaptureRequest { payload, scope, source, .. } = request;
        let text = payload.text_or_turns();
        let text = text.ok_or_else(|| {
            Error::unsupported("notes takes texts and conversations; send payload.text")
        })?;
        // The same event comes with the same id, and becomes the same note. What was changed
        // meanwhile stays.
        let id = request.operation_id;
        if self.notes.get(&id)?.is_none() {
            let metadata = request.metadata.or(payload.metadata);
            self.notes
                .put(&id, &Note { metadata, source: Some(source), ..Note::of(&scope, text) })?;
        }
        Ok(vec![id].into())
    }

    fn upsert_records(&mut self, request: UpsertRequest) -> Result<UpsertResponse, Error> {
        let (mut batch, mut ids) = (Batch::new(), Vec::new());
        for (n, record) in request.records.into_iter().enumerate() {
            let RecordWrite { id, text, summary, metadata, source, .. } = record;
            let source = source.or_else(|| request.source.clone());
            let id = id.unwrap_or_else(|| format!("{}-{n}", request.operation_id));
            if self.notes.get(&id)?.is_some_and(|old| !old.is_visible_in(&request.scope)) {
                return Err(Error::invalid(
                    &format!("records.{n}.id"),
                    "is taken; choose another id",
                ));
            }
            let note = Note { summary, metadata, source, ..Note::of(&request.scope, text) };
            batch.put(&self.notes, &id, &note)?;
            ids.push(id);
        }
        batch.apply()?;
        Ok(ids.into())
    }

    fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error> {
        let filter = filter(request.metadata_filter)?;
        let words: Vec<String> =
            request.query.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let share = |note: &Note| {
            let text = note.text.to_lowercase();
            let found = words.iter().filter(|word| text.contains(word.as_str())).count();
            found as f64 / words.len().max(1) as f64
        };
        let mut found: Vec<(f64, RecordId, Note)> = self
            .all(&request.scope)?
            .into_iter()
            .map(|(id, note)| (share(&note), id, note))
            // A query at the start of a run may have no question: then every note fits.
            .filter(|(share, _, note)| {
                !note.pending && (*share > 0.0 || words.is_empty()) && note.has(&filter)
            })
            .collect();
        found.sort_by(|(a, ..), (b, ..)| b.total_cmp(a));
        found.truncate(request.top_k as usize);
        let snippet = |(share, id, note): (f64, RecordId, Note)| Snippet {
            score: Score::Rank(share),
            ..note.snippet(id)
        };
        Ok(found.into_iter().map(snippet).collect::<Vec<_>>().into())
    }

    fn list_records(&mut self, request: ListRequest) -> Result<ListPage, Error> {
        let filter = filter(request.metadata_filter)?;
        let mut rest = self.all(&request.scope)?;
        // The cursor is the last id of the page before: it stays valid while others write.
        let is_next = |id: &RecordId| request.cursor.as_ref().is_none_or(|last| id > last);
        rest.retain(|(id, note)| !note.pending && is_next(id) && note.has(&filter));
        let has_more = rest.len() > request.limit as usize;
        rest.truncate(request.limit as usize);
        let continuation = match rest.last() {
            Some((last, _)) if has_more => Continuation::Next(last.clone()),
            _ => Continuation::End,
        };
        let items = rest.into_iter().map(|(id, note)| note.snippet(id)).collect();
        Ok(ListPage { items, continuation, ..ListPage::default() })
    }

    fn get_record(&mut self, id: RecordId, scope: Scope) -> Result<GetResponse, Error> {
        let note = self.find(&id, &scope)?.filter(|note| !note.pending);
        Ok(note.map(|note| note.snippet(id)).into())
    }

    fn forget(
        &mut self,
        ForgetRequest { scope, ids, .. }: ForgetRequest,
    ) -> Result<ForgetResponse, Error> {
        let (mut batch, mut outcomes) = (Batch::new(), Vec::new());
        for id in ids {
            let is_named_before = outcomes.iter().any(|outcome: &ForgetOutcome| outcome.id == id);
            let effect = match self.find(&id, &scope)? {
                Some(_) if !is_named_before => {
                    batch.delete(&self.notes, &id);
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

memhost_sdk::export!(Notes);
