//! The requests and their answers. Documents, search, profile, versions and forgetting are as `supermemory` 4.25.4 sends
//! them; that SDK has no routes to add and to list memories, which are as supermemory's documentation has them.

use std::cell::OnceCell;

use memhost_sdk::http::{Client, Error, segment};
use memhost_sdk::meter;
use memhost_sdk::remote::{Listing, Record, Service, Tag, scope_of, utc};
use memhost_sdk::types::{self, ForgetEffect, Scope, Score};
use serde_json::{Map, Value, json};

use crate::answers::{Document, Found, Known, List, Memory};
use crate::config::Config;

/// The most hits of one search, and a page of the list.
const MOST: usize = 100;
/// The longest text of a memory, in characters.
const LONGEST: usize = 10_000;
/// How many pages are read for a memory that somebody else wrote, which only its id names.
const PAGES: u32 = 10;
/// What the ids of memories that this provider wrote begin with; the rest is the key. supermemory's own have no hyphen.
const OWN: &str = "own-";
/// Members of a memory's metadata that are this provider's.
const TAG: &str = "memhost";
const ID: &str = "memhost_id";
const PARTITIONS: [&str; 3] = ["memhost_agent", "memhost_subject", "memhost_namespace"];

/// supermemory, as one container of it.
#[derive(Debug)]
pub struct Api {
    pub(crate) config: Config,
    http: Client,
    container: OnceCell<String>,
}

impl Api {
    pub(crate) fn new(config: Config) -> Result<Self, types::Error> {
        let http = Client::new(&config.url)?.secret("authorization", "Bearer", "SUPERMEMORY_API_KEY");
        Ok(Self { http, config, container: OnceCell::new() })
    }

    /// Whose memories these are: an instance gets the calls of one company only.
    pub(crate) fn belong_to(&self, company: &str) {
        let named = || plain(&format!("memhost-{company}"), '_');
        self.container.get_or_init(|| self.config.container_tag.clone().unwrap_or_else(named));
    }

    fn container(&self) -> &str {
        self.container.get().map_or("memhost", String::as_str)
    }

    /// The metadata of a document or, with its id, of a memory. supermemory takes no objects in it.
    fn metadata(id: Option<&str>, tag: &Tag) -> Value {
        let mut all: Map<_, _> = tag.texts().into_iter().map(|(name, text)| (name, json!(text))).collect();
        all.insert(TAG.to_owned(), json!(json!(tag).to_string()));
        id.map(|id| all.insert(ID.to_owned(), json!(id)));
        for (name, own) in PARTITIONS.into_iter().zip(partitions(tag.scope.as_ref())) {
            all.insert(name.to_owned(), json!(own.map_or_else(|| "-".to_owned(), |own| format!("={own}"))));
        }
        all.into()
    }

    /// Gives what was said to be extracted from, and reads the document back. The same key again is the same document.
    pub(crate) fn learn(&self, key: &str, text: &str, tag: &Tag) -> Result<String, Error> {
        let custom_id = plain(key, '.');
        let body = json!({"content": text, "containerTag": self.container(), "customId": custom_id,
            "metadata": Self::metadata(None, tag)});
        let Document { id, .. } = self.http.post("/v3/documents").json(&body).answer()?;
        meter::charge("supermemory", "add", self.config.add_microcents);
        match self.document(&id)? {
            Some(document) if document.custom_id == Some(custom_id) => Ok(id),
            _ => Err(odd("POST /v3/documents", &format!("the document is not there as {id}"))),
        }
    }

    pub(crate) fn document(&self, id: &str) -> Result<Option<Document>, Error> {
        self.http.get(&format!("/v3/documents/{}", segment(id))).answer_if_found()
    }

    /// The memories that were made of a document, among the newest ones.
    pub(crate) fn made_of(&self, document: &str) -> Result<Vec<String>, Error> {
        let of = |memory: &Memory| memory.document_ids.iter().any(|id| id == document);
        let mut made = Vec::new();
        for page in 1..=PAGES {
            let (entries, more) = self.entries(page, &[])?;
            made.extend(entries.into_iter().filter(of).map(|memory| memory.id));
            if !more {
                break;
            }
        }
        Ok(made)
    }

    /// A page of the memories that are there, newest first, and whether another one follows.
    fn entries(&self, page: u32, members: &[(String, String)]) -> Result<(Vec<Memory>, bool), Error> {
        let mut body = json!({"containerTags": [self.container()], "page": page, "limit": MOST, "sort": "createdAt",
            "order": "desc"});
        if !members.is_empty() {
            body["filters"] = filters(members);
        }
        // A container that nobody wrote to is not there.
        let found: Option<List> = self.http.post("/v4/memories/list").json(&body).reads().answer_if_found()?;
        Ok(found.map_or_else(Default::default, |List { mut memory_entries, pagination }| {
            memory_entries.retain(|memory| !memory.is_forgotten && memory.is_latest != Some(false));
            (memory_entries, pagination.current_page < pagination.total_pages)
        }))
    }

    fn of_id(&self, id: &str) -> Result<Vec<Memory>, Error> {
        Ok(self.entries(1, &[(ID.to_owned(), id.to_owned())])?.0)
    }

    /// The latest version of a memory, by the id that this provider gave it, or by that of any version.
    fn entry(&self, id: &str) -> Result<Option<Memory>, Error> {
        if let Some(memory) = self.of_id(id)?.pop() {
            return Ok(Some(memory));
        }
        let is = |memory: &Memory| {
            memory.id == id
                || memory.root_memory_id.as_deref() == Some(id)
                || memory.history.iter().any(|version| version.id == id)
        };
        for page in 1..=if id.starts_with(OWN) { 0 } else { PAGES } {
            let (entries, more) = self.entries(page, &[])?;
            if let Some(memory) = entries.into_iter().find(is) {
                return Ok(Some(memory));
            }
            if !more {
                break;
            }
        }
        Ok(None)
    }

    fn record(&self, found: Memory) -> Result<Record, Error> {
        let mut metadata = found.metadata.unwrap_or_default();
        let member = |name: &str| Some(metadata.get(name)?.as_str()?.to_owned());
        let own = member(ID);
        let mut tag = match member(TAG).and_then(|json| serde_json::from_str::<Tag>(&json).ok()) {
            Some(tag) => tag,
            None => {
                metadata.retain(|name, _| !PARTITIONS.contains(&name.as_str()));
                let mut documents = found.documents.into_iter().map(|document| document.id).chain(found.document_ids);
                let unread = |error| odd("the scope of a memory", &format!("storage: {error:?}"));
                Tag {
                    // Of the first document that a capture made.
                    scope: documents.find_map(|id| scope_of(&id).transpose()).transpose().map_err(unread)?,
                    metadata: (!metadata.is_empty()).then(|| json!(metadata).to_string()),
                    ..Tag::default()
                }
            }
        };
        tag.created_at = tag.created_at.or_else(|| utc(found.created_at.as_deref()?));
        tag.expires_at = tag.expires_at.or_else(|| utc(found.forget_after.as_deref()?));
        Ok(Record {
            key: own.as_deref().and_then(|own| own.strip_prefix(OWN)).map(str::to_owned),
            id: own.unwrap_or(found.id),
            text: found.memory.unwrap_or_default(),
            tag,
            score: found.similarity.filter(|of| of.is_finite()).map(|of| Score::Similarity(of.clamp(0.0, 1.0))),
            updated_at: found.updated_at.as_deref().and_then(utc),
        })
    }

    /// Deletes what was captured, and so what was made of it.
    pub(crate) fn delete_all(&self) -> Result<(), Error> {
        let body = json!({"containerTags": [self.container()]});
        self.http.delete("/v3/documents/bulk").json(&body).answer_if_found::<Value>().map(drop)
    }

    /// What is known about a scope, line by line: what stays true first.
    pub(crate) fn profile(&self, scope: &Scope) -> Result<Vec<String>, Error> {
        let either = |(name, asked): (&str, Option<&str>)| {
            let asked = asked?;
            Some(json!({"OR": [{"key": name, "value": format!("={asked}")}, {"key": name, "value": "-"}]}))
        };
        let narrow: Vec<_> = PARTITIONS.into_iter().zip(partitions(Some(scope))).filter_map(either).collect();
        let mut body = json!({"containerTag": self.container()});
        if !narrow.is_empty() {
            body["filters"] = json!({"AND": narrow});
        }
        let known: Option<Known> = self.http.post("/v4/profile").json(&body).reads().answer_if_found()?;
        let lines = known.map(|known| known.profile.r#static.into_iter().chain(known.profile.dynamic).collect());
        Ok(lines.unwrap_or_default())
    }

    /// How many documents there are.
    pub(crate) fn ping(&self) -> Result<u64, Error> {
        let list: Value = self.http.post("/v3/documents/list").json(&json!({"limit": 1})).reads().answer()?;
        let missing = || odd("POST /v3/documents/list", "it has no number of documents");
        list["pagination"]["totalItems"].as_u64().ok_or_else(missing)
    }
}

impl Service for Api {
    fn takes(&self, text: &str, _: &Tag) -> Result<(), types::Error> {
        if text.chars().count() <= LONGEST {
            return Ok(());
        }
        Err(types::Error::invalid("text", "has more than the 10,000 characters that supermemory takes"))
    }

    fn is_id(&self, id: &str) -> bool {
        (1..=200).contains(&id.len())
    }

    fn add(&self, key: &str, text: &str, tag: &Tag) -> Result<String, Error> {
        let id = format!("{OWN}{key}");
        let mut memory = json!({"content": text, "metadata": Self::metadata(Some(&id), tag)});
        if let Some(time) = &tag.expires_at {
            memory["forgetAfter"] = time.as_str().into();
        }
        let body = json!({"memories": [memory], "containerTag": self.container()});
        self.http.post("/v4/memories").json(&body).answer::<Value>()?;
        meter::charge("supermemory", "add", self.config.add_microcents);
        Ok(id)
    }

    fn written(&self, key: &str, _: &str) -> Result<Vec<Record>, Error> {
        self.of_id(&format!("{OWN}{key}"))?.into_iter().map(|memory| self.record(memory)).collect()
    }

    fn find(&self, id: &str) -> Result<Option<Record>, Error> {
        let found = self.entry(id)?.map(|memory| self.record(memory)).transpose()?;
        // An earlier version's id is asked for, and the latest one is answered under it.
        Ok(found.map(|record| Record { id: id.to_owned(), ..record }))
    }

    fn replace(&self, old: &Record, text: &str, tag: &Tag) -> Result<(), Error> {
        let Some(latest) = self.entry(&old.id)? else { return Ok(()) };
        let body = json!({"id": latest.id, "containerTag": self.container(), "newContent": text,
            "metadata": Self::metadata(Some(&old.id), tag), "forgetAfter": tag.expires_at});
        self.http.patch("/v4/memories").json(&body).send().map(drop)
    }

    fn delete(&self, id: &str) -> Result<(), Error> {
        let Some(latest) = self.entry(id)? else { return Ok(()) };
        let body = json!({"id": latest.id, "containerTag": self.container()});
        self.http.delete("/v4/memories").json(&body).answer_if_found::<Value>().map(drop)
    }

    fn left_of(&self, _: &str) -> Result<ForgetEffect, Error> {
        Ok(ForgetEffect::Soft)
    }

    fn search(&self, query: &str, members: &[(String, String)], most: usize) -> Result<Vec<Record>, Error> {
        let mut body = json!({"q": query, "containerTag": self.container(), "limit": most, "searchMode": "memories",
            "include": {"documents": true}});
        if let Some(threshold) = self.config.threshold {
            body["threshold"] = threshold.into();
        }
        if !members.is_empty() {
            body["filters"] = filters(members);
        }
        let found: Option<Found> = self.http.post("/v4/search").json(&body).reads().answer_if_found()?;
        meter::charge("supermemory", "search", self.config.search_microcents);
        found.into_iter().flat_map(|found| found.results).map(|memory| self.record(memory)).collect()
    }

    fn most_hits(&self) -> usize {
        MOST
    }

    fn list(&self, page: u32) -> Result<(Vec<Record>, bool), Error> {
        let (entries, more) = self.entries(page, &[])?;
        Ok((entries.into_iter().map(|memory| self.record(memory)).collect::<Result<_, _>>()?, more))
    }

    fn listing(&self) -> Listing {
        Listing::Pages
    }
}

fn partitions(scope: Option<&Scope>) -> [Option<&str>; 3] {
    let own = |of: fn(&Scope) -> &Option<String>| scope.and_then(|scope| of(scope).as_deref());
    [own(|scope| &scope.agent_id), own(|scope| &scope.subject_id), own(|scope| &scope.namespace)]
}

/// Those whose metadata has all of these members.
fn filters(members: &[(String, String)]) -> Value {
    json!({"AND": members.iter().map(|(name, text)| json!({"key": name, "value": text})).collect::<Vec<_>>()})
}

/// A text of letters, digits, `-` and `_`: other bytes are written as two digits after `escape`.
fn plain(text: &str, escape: char) -> String {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    text.bytes()
        .map(|byte| if fits(byte) { char::from(byte).to_string() } else { format!("{escape}{byte:02x}") })
        .collect()
}

fn odd(request: &str, reason: &str) -> Error {
    Error::Answer { request: request.to_owned(), reason: reason.to_owned() }
}
