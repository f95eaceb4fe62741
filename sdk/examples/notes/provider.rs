// Without inner attributes: the examples of the documentation include this file.

use memhost_sdk::storage::{Batch, Collection};
use memhost_sdk::{Provider, types::*};
use serde::{Deserialize, Serialize};

/// A note as it is stored, under its agent and its id.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Note {
    /// What is found and answered.
    pub text: String,
    /// It waits for a person and is not found.
    pub pending: bool,
}

/// The provider.
#[derive(Debug)]
pub struct Notes {
    /// All notes of the binding.
    pub notes: Collection<Note>,
}

impl Notes {
    /// Agents do not see each other's notes; companies never share a binding.
    pub fn key(scope: &Scope, id: &str) -> String {
        format!("{}/{id}", scope.agent_id.as_deref().unwrap_or_default())
    }

    /// The notes of a scope, by id.
    pub fn all(&self, scope: &Scope) -> Result<Vec<(RecordId, Note)>, Error> {
        let prefix = Self::key(scope, "");
        let mut all = Vec::new();
        for entry in self.notes.iter(&prefix) {
            let (key, note) = entry?;
            all.push((String::from_utf8_lossy(&key[prefix.len()..]).into_owned(), note));
        }
        Ok(all)
    }

    /// Writes texts in one step. The same operation twice gives the same ids, and so the same notes.
    pub fn write(&mut self, operation: &str, scope: &Scope, texts: Vec<RecordWrite>) -> Result<Vec<RecordId>, Error> {
        let (mut batch, mut ids) = (Batch::new(), Vec::new());
        for (n, record) in texts.into_iter().enumerate() {
            let id = record.id.unwrap_or_else(|| format!("{operation}-{n}"));
            batch.put(&self.notes, Self::key(scope, &id), &Note { text: record.text, pending: false })?;
            ids.push(id);
        }
        batch.apply()?;
        Ok(ids)
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
        let text =
            request.payload.text.ok_or_else(|| Error::unsupported("notes takes text only; send payload.text"))?;
        let record = RecordWrite { id: None, text, summary: None, metadata: None };
        Ok(self.write(&request.operation_id, &request.scope, vec![record])?.into())
    }

    fn upsert_records(&mut self, request: UpsertRequest) -> Result<UpsertResponse, Error> {
        Ok(self.write(&request.operation_id, &request.scope, request.records)?.into())
    }

    fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error> {
        let words: Vec<String> = request.query.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let share = |note: &Note| {
            let text = note.text.to_lowercase();
            let found = words.iter().filter(|word| text.contains(word.as_str())).count();
            found as f64 / words.len().max(1) as f64
        };
        let mut found: Vec<Snippet> = self
            .all(&request.scope)?
            .into_iter()
            .filter(|(_, note)| !note.pending && share(note) > 0.0)
            .map(|(id, note)| Snippet { score: Score::Rank(share(&note)), ..Snippet::new(id, note.text) })
            .collect();
        let rank = |snippet: &Snippet| match snippet.score {
            Score::Rank(rank) => rank,
            _ => 0.0,
        };
        found.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
        found.truncate(request.top_k as usize);
        Ok(found.into())
    }

    fn list_records(&mut self, request: ListRequest) -> Result<ListPage, Error> {
        let mut rest = self.all(&request.scope)?;
        // The cursor is the last id of the page before: it holds while others write.
        rest.retain(|(id, note)| !note.pending && request.cursor.as_ref().is_none_or(|last| id > last));
        let has_more = rest.len() > request.limit as usize;
        rest.truncate(request.limit as usize);
        let continuation = match rest.last() {
            Some((last, _)) if has_more => Continuation::Next(last.clone()),
            _ => Continuation::End,
        };
        let items = rest.into_iter().map(|(id, note)| Snippet::new(id, note.text)).collect();
        Ok(ListPage { items, continuation, ..ListPage::default() })
    }

    fn get_record(&mut self, id: RecordId, scope: Scope) -> Result<GetResponse, Error> {
        let note = self.notes.get(Self::key(&scope, &id))?.filter(|note| !note.pending);
        Ok(note.map(|note| Snippet::new(id, note.text)).into())
    }

    fn forget(&mut self, ids: Vec<RecordId>, scope: Scope) -> Result<ForgetResponse, Error> {
        let (mut batch, mut outcomes) = (Batch::new(), Vec::new());
        for id in ids {
            let key = Self::key(&scope, &id);
            let effect = match self.notes.get(&key)? {
                Some(_) => ForgetEffect::Hard,
                None => ForgetEffect::NotFound,
            };
            batch.delete(&self.notes, key);
            outcomes.push(ForgetOutcome { id, effect });
        }
        batch.apply()?;
        Ok(ForgetResponse { outcomes, usage: Vec::new() })
    }
}

memhost_sdk::export!(Notes);
