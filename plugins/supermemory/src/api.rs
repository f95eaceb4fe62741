//! The requests and their answers. Documents, search, profile, versions and forgetting are as
//! `supermemory` 4.25.4 sends them; that SDK has no routes to add and to list memories, which are
//! as supermemory's documentation has them.

use memhost_sdk::http::{Client, Error, filled, segment};
use memhost_sdk::remote::{Record, Service, Tag, items, utc, work_of};
use memhost_sdk::types::Score;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::config::Config;

/// What the ids of memories that this provider wrote begin with; the rest is the key. supermemory's
/// own have no hyphen.
pub(crate) const OWN: &str = "own-";
/// The member of a memory's metadata that is its id here.
const ID: &str = "memhost_id";
/// How many pages are read for a memory that somebody else wrote, which only its id names.
const PAGES: u32 = 10;

/// supermemory, as one container of it: the provider of a binding.
#[derive(Debug)]
pub struct Supermemory {
    pub(crate) config: Config,
    pub(crate) http: Client,
    /// The owner of the memories.
    pub(crate) container: String,
}

/// A memory as search and list show it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Memory {
    pub(crate) id: String,
    memory: Option<String>,
    root_memory_id: Option<String>,
    metadata: Option<Map<String, Value>>,
    similarity: Option<f64>,
    created_at: Option<String>,
    updated_at: Option<String>,
    forget_after: Option<String>,
    #[serde(default)]
    is_forgotten: bool,
    is_latest: Option<bool>,
    #[serde(default)]
    history: Vec<Named>,
    #[serde(default)]
    document_ids: Vec<String>,
    #[serde(default)]
    documents: Vec<Named>,
}

/// An earlier version, or a document.
#[derive(Debug, Deserialize)]
struct Named {
    id: String,
}

impl Memory {
    /// Whether it is the latest version of a memory that is not forgotten.
    fn is_there(&self) -> bool {
        !self.is_forgotten && self.is_latest != Some(false)
    }

    /// Whether it has this id, or a version of it.
    pub(crate) fn is_of(&self, id: &str) -> bool {
        self.id == id
            || self.root_memory_id.as_deref() == Some(id)
            || self.history.iter().any(|named| named.id == id)
    }

    /// Whether it was made of this document.
    pub(crate) fn is_made_of(&self, document: &str) -> bool {
        self.document_ids.iter().any(|id| id == document)
    }

    pub(crate) fn record(self) -> Result<Record, Error> {
        let metadata = self.metadata.unwrap_or_default();
        let own = metadata.get(ID).and_then(Value::as_str).map(str::to_owned);
        let tag = match Tag::of_members(&metadata) {
            Some(tag) => tag,
            None => {
                // Its scope is that of the first document that a capture made.
                let mut documents =
                    self.documents.into_iter().map(|named| named.id).chain(self.document_ids);
                let work = documents.find_map(|id| work_of(&id).transpose()).transpose()?;
                Tag { scope: work.map(|work| work.scope), ..Tag::foreign(&metadata) }
            }
        };
        Ok(Record {
            key: own.as_deref().and_then(|own| own.strip_prefix(OWN)).map(str::to_owned),
            id: own.unwrap_or(self.id),
            text: self.memory.unwrap_or_default(),
            tag: tag.or_times(self.created_at.as_deref(), self.forget_after.as_deref()),
            score: self.similarity.map(Score::similarity),
            updated_at: self.updated_at.as_deref().and_then(utc),
            ..Record::default()
        })
    }
}

/// A page of the list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct List {
    memory_entries: Vec<Memory>,
    pagination: Pagination,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pagination {
    current_page: u32,
    total_pages: u32,
}

/// A document: what was captured, on its way to memories.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document {
    pub(crate) status: String,
    pub(crate) custom_id: Option<String>,
}

/// The profile of a container: lasting facts, and present ones.
#[derive(Default, Deserialize)]
pub(crate) struct Known {
    pub(crate) r#static: Vec<String>,
    pub(crate) dynamic: Vec<String>,
}

impl Supermemory {
    pub(crate) fn document(&self, id: &str) -> Result<Option<Document>, Error> {
        self.http.get(&format!("/v3/documents/{}", segment(id))).answer_if_found()
    }

    /// A page of the memories that are there, newest first, and whether another one follows.
    pub(crate) fn entries(
        &self,
        page: u32,
        members: &[(String, String)],
    ) -> Result<(Vec<Memory>, bool), Error> {
        let body = filled(
            json!({"containerTags": [self.container], "page": page, "limit": Self::MOST_HITS,
            "sort": "createdAt", "order": "desc", "filters": filters(members)}),
        );
        // A container that nobody wrote to is not there.
        let found: Option<List> =
            self.http.post("/v4/memories/list").json(&body).reads().answer_if_found()?;
        let Some(List { mut memory_entries, pagination }) = found else {
            return Ok((Vec::new(), false));
        };
        memory_entries.retain(Memory::is_there);
        Ok((memory_entries, pagination.current_page < pagination.total_pages))
    }

    /// Those of the newest memories that fit.
    pub(crate) fn newest(
        &self,
        fits: impl Fn(&Memory) -> bool,
    ) -> impl Iterator<Item = Result<Memory, Error>> {
        items(PAGES, |page| self.entries(page, &[]), fits)
    }

    /// The memories that this provider gave this id.
    pub(crate) fn of_id(&self, id: &str) -> Result<Vec<Memory>, Error> {
        Ok(self.entries(1, &[(ID.to_owned(), id.to_owned())])?.0)
    }

    /// The latest version of a memory, by the id that this provider gave it, or by that of any
    /// version.
    pub(crate) fn entry(&self, id: &str) -> Result<Option<Memory>, Error> {
        match self.of_id(id)?.pop() {
            None if !id.starts_with(OWN) => {
                self.newest(|memory| memory.is_of(id)).next().transpose()
            }
            found => Ok(found),
        }
    }
}

/// The metadata of a document or, with its id, of a memory. supermemory takes no objects in it.
pub(crate) fn metadata(id: Option<&str>, tag: &Tag) -> Value {
    let mut all = tag.members("");
    all.extend(id.map(|id| (ID.to_owned(), id.into())));
    all.into()
}

pub(crate) fn equal(name: &str, text: &str) -> Value {
    json!({"key": name, "value": text})
}

/// Those of which all of this is true. `None` without a condition.
pub(crate) fn all_of(conditions: impl Iterator<Item = Value>) -> Option<Value> {
    let conditions: Vec<_> = conditions.collect();
    (!conditions.is_empty()).then(|| json!({"AND": conditions}))
}

/// Those whose metadata has all of these members.
pub(crate) fn filters(members: &[(String, String)]) -> Option<Value> {
    all_of(members.iter().map(|(name, text)| equal(name, text)))
}
