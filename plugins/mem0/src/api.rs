//! The requests of both APIs and their answers, as `mem0ai` 2.2.1 sends and its server answers them.

use std::cell::OnceCell;

use memhost_sdk::http::{Client, Error, Request, segment};
use memhost_sdk::meter;
use memhost_sdk::remote::{Listing, Record, Service, Tag, utc};
use memhost_sdk::types::{self, ForgetEffect, Score};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::config::{self, Config};

/// The most that one answer has, and a page of the hosted API.
const MOST: usize = 1_000;
const PAGE: u32 = 100;
/// Members of a memory's metadata that mem0's server uses itself, and ours.
const RESERVED: [&str; 16] = [
    "data",
    "hash",
    "role",
    "user_id",
    "agent_id",
    "run_id",
    "app_id",
    "actor_id",
    "attributed_to",
    "created_at",
    "updated_at",
    "expiration_date",
    "text_lemmatized",
    "memory_type",
    "memhost",
    "memhost_key",
];

/// mem0, as one user of it.
#[derive(Debug)]
pub struct Api {
    pub(crate) config: Config,
    http: Client,
    user: OnceCell<String>,
}

/// A memory as all routes show it.
#[derive(Debug, Deserialize)]
struct Memory {
    id: String,
    memory: Option<String>,
    user_id: Option<String>,
    score: Option<f64>,
    metadata: Option<Map<String, Value>>,
    created_at: Option<String>,
    updated_at: Option<String>,
    expiration_date: Option<String>,
}

impl From<Memory> for Record {
    fn from(memory: Memory) -> Self {
        let metadata = memory.metadata.as_ref();
        let ours = metadata.and_then(|all| serde_json::from_value(all.get("memhost")?.clone()).ok());
        let foreign = || Tag { metadata: metadata.map(|all| json!(all).to_string()), ..Tag::default() };
        let mut tag: Tag = ours.unwrap_or_else(foreign);
        tag.created_at = tag.created_at.or_else(|| utc(memory.created_at.as_deref()?));
        tag.expires_at = tag.expires_at.or_else(|| utc(&format!("{}T23:59:59", memory.expiration_date.as_deref()?)));
        // The score is a fusion of several signals, whose scale depends on the query.
        let score = memory.score.filter(|score| score.is_finite()).map(|score| Score::Rank(score.clamp(0.0, 1.0)));
        let key = metadata.and_then(|all| Some(all.get("memhost_key")?.as_str()?.to_owned()));
        let (text, updated_at) = (memory.memory.unwrap_or_default(), memory.updated_at.as_deref().and_then(utc));
        Self { id: memory.id, key, text, tag, score, updated_at }
    }
}

/// What adding and an event answer. `results` is there once it is done.
#[derive(Debug, Deserialize)]
pub(crate) struct Added {
    pub(crate) results: Option<Vec<AddedMemory>>,
    pub(crate) event_id: Option<String>,
    #[serde(default)]
    pub(crate) status: String,
    pub(crate) error: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct AddedMemory {
    id: String,
}

impl Added {
    pub(crate) fn ids(&self) -> Vec<String> {
        self.results.iter().flatten().map(|memory| memory.id.clone()).collect()
    }
}

#[derive(Deserialize)]
struct List {
    results: Vec<Memory>,
    next: Option<String>,
}

impl Api {
    pub(crate) fn new(config: Config) -> Result<Self, types::Error> {
        let http = Client::new(&config.url)?;
        let http = match (config.without_key, config.api) {
            (true, _) => http,
            (false, config::Api::Hosted) => http.secret("authorization", "Token", "MEM0_API_KEY"),
            (false, config::Api::SelfHosted) => http.secret("x-api-key", "", "MEM0_API_KEY"),
        };
        Ok(Self { http, config, user: OnceCell::new() })
    }

    /// Whose memories these are: an instance gets the calls of one company only.
    pub(crate) fn belong_to(&self, company: &str) {
        let named = || self.config.user_id.clone().unwrap_or_else(|| format!("memhost-{company}"));
        self.user.get_or_init(named);
    }

    fn user(&self) -> &str {
        self.user.get().map_or("memhost", String::as_str)
    }

    pub(crate) fn is_hosted(&self) -> bool {
        self.config.api == config::Api::Hosted
    }

    /// The route of each API, where `{}` is the memory.
    fn route(&self, hosted: &str, own: &str, id: &str) -> String {
        if self.is_hosted() { hosted } else { own }.replace("{}", &segment(id))
    }

    fn one(&self, id: &str) -> String {
        self.route("/v1/memories/{}/", "/memories/{}", id)
    }

    /// What goes into a memory's metadata: the tag, the key that a lost answer is looked for by, and what can be filtered.
    fn metadata(key: Option<&str>, tag: &Tag) -> Value {
        let mut metadata: Map<_, _> = plain(&tag.texts()).map(|(name, text)| (name, json!(text))).collect();
        metadata.insert("memhost".to_owned(), json!(tag));
        metadata.insert("memhost_key".to_owned(), json!(key));
        metadata.into()
    }

    /// Adds what was said, or with `infer` what mem0's model makes of it.
    pub(crate) fn learn(&self, key: &str, messages: &Value, tag: &Tag, infer: bool) -> Result<Added, Error> {
        let mut body = json!({"messages": messages, "user_id": self.user(), "infer": infer,
            "metadata": Self::metadata(Some(key), tag)});
        if let Some(date) = tag.expires_at.as_deref().and_then(|time| time.get(..10)) {
            body["expiration_date"] = date.into();
        }
        let added: Added = self.http.post(&self.route("/v3/memories/add/", "/memories", "")).json(&body).answer()?;
        meter::charge("mem0", "add", self.config.add_microcents);
        if added.results.is_none() && added.event_id.is_none() {
            return Err(odd("adding a memory", "it names neither memories nor an event"));
        }
        Ok(added)
    }

    pub(crate) fn event(&self, id: &str) -> Result<Option<Added>, Error> {
        self.http.get(&format!("/v1/event/{}/", segment(id))).answer_if_found()
    }

    /// The event that a capture with this key began. Its payload is what was sent.
    pub(crate) fn event_of(&self, key: &str) -> Result<Option<String>, Error> {
        if !self.is_hosted() {
            return Ok(None);
        }
        let events: Value = self.http.get("/v1/events/").query("event_type", "ADD").answer()?;
        let mut events = events["results"].as_array().into_iter().flatten();
        let event = events.find(|event| event["payload"]["metadata"]["memhost_key"] == key);
        Ok(event.and_then(|event| Some(event["id"].as_str()?.to_owned())))
    }

    /// The user's memories that have all of these members of the metadata.
    fn filters(&self, members: impl Iterator<Item = (String, String)>) -> Value {
        if self.is_hosted() {
            let members = members.map(|(name, text)| json!({"metadata": {name: text}}));
            return json!({"AND": std::iter::once(json!({"user_id": self.user()})).chain(members).collect::<Vec<_>>()});
        }
        let mut all: Map<_, _> = members.map(|(name, text)| (name, json!(text))).collect();
        all.insert("user_id".to_owned(), json!(self.user()));
        all.into()
    }

    fn hits(&self, body: &Value) -> Result<Vec<Record>, Error> {
        let search = self.http.post(&self.route("/v3/memories/search/", "/search", "")).json(body).reads();
        let found: List = search.answer()?;
        Ok(found.results.into_iter().map(Record::from).collect())
    }

    fn whole(&self, most: usize) -> Request<'_> {
        self.http.get("/memories").query("user_id", self.user()).query("top_k", &most)
    }

    pub(crate) fn ping(&self) -> Result<(), Error> {
        if self.is_hosted() { self.http.get("/v1/ping/") } else { self.whole(1) }.send().map(drop)
    }

    pub(crate) fn delete_all(&self) -> Result<(), Error> {
        self.http.delete(&self.route("/v1/memories/", "/memories", "")).query("user_id", self.user()).send().map(drop)
    }
}

impl Service for Api {
    fn is_id(&self, id: &str) -> bool {
        let fits =
            |(at, c): (usize, char)| if [8, 13, 18, 23].contains(&at) { c == '-' } else { c.is_ascii_hexdigit() };
        id.len() == 36 && id.char_indices().all(fits)
    }

    fn add(&self, key: &str, text: &str, tag: &Tag) -> Result<String, Error> {
        let added = self.learn(key, &json!([{"role": "user", "content": text}]), tag, false)?;
        added.ids().pop().ok_or_else(|| odd("adding a memory", "it names no memory"))
    }

    fn written(&self, key: &str, text: &str) -> Result<Vec<Record>, Error> {
        let filters = self.filters(std::iter::once(("memhost_key".to_owned(), key.to_owned())));
        let mut hits = self.hits(&json!({"query": text, "filters": filters, "top_k": 100, "threshold": 0.0}))?;
        hits.retain(|record| record.key.as_deref() == Some(key));
        Ok(hits)
    }

    fn find(&self, id: &str) -> Result<Option<Record>, Error> {
        let path = self.one(id);
        match self.http.get(&path).answer_if_found::<Option<Memory>>()?.flatten() {
            Some(other) if other.id != id => Err(odd(&format!("GET {path}"), "it is another memory")),
            found => Ok(found.filter(|memory| memory.user_id.as_deref() == Some(self.user())).map(Record::from)),
        }
    }

    fn replace(&self, old: &Record, text: &str, tag: &Tag) -> Result<(), Error> {
        let date = tag.expires_at.as_deref().and_then(|time| time.get(..10));
        let metadata = Self::metadata(old.key.as_deref(), tag);
        let body = json!({"text": text, "metadata": metadata, "expiration_date": date});
        self.http.put(&self.one(&old.id)).json(&body).send().map(drop)
    }

    fn delete(&self, id: &str) -> Result<(), Error> {
        self.http.delete(&self.one(id)).answer_if_found::<Value>().map(drop)
    }

    fn left_of(&self, id: &str) -> Result<ForgetEffect, Error> {
        let path = self.route("/v1/memories/{}/history/", "/memories/{}/history", id);
        let history = self.http.get(&path).answer_if_found::<Vec<Value>>()?.unwrap_or_default();
        let has_text = |entry: &Value| entry["old_memory"].is_string() || entry["new_memory"].is_string();
        Ok(if history.iter().any(has_text) { ForgetEffect::HistoryKept } else { ForgetEffect::Hard })
    }

    fn search(&self, query: &str, members: &[(String, String)], most: usize) -> Result<Vec<Record>, Error> {
        let mut body = json!({"query": query, "filters": self.filters(plain(members)), "top_k": most});
        if let Some(threshold) = self.config.threshold {
            body["threshold"] = threshold.into();
        }
        let hits = self.hits(&body)?;
        meter::charge("mem0", "search", self.config.search_microcents);
        Ok(hits)
    }

    fn most_hits(&self) -> usize {
        MOST
    }

    fn list(&self, page: u32) -> Result<(Vec<Record>, bool), Error> {
        let request = if self.is_hosted() {
            let paged = self.http.post("/v3/memories/").query("page", &page).query("page_size", &PAGE).reads();
            paged.json(&json!({"filters": self.filters(std::iter::empty())}))
        } else {
            self.whole(MOST)
        };
        let list: List = request.answer()?;
        Ok((list.results.into_iter().map(Record::from).collect(), list.next.is_some()))
    }

    fn listing(&self) -> Listing {
        if self.is_hosted() { Listing::Pages } else { Listing::Whole(MOST) }
    }
}

/// What mem0 can filter by: names that it does not use itself, and no text that it takes for any.
fn plain(all: &[(String, String)]) -> impl Iterator<Item = (String, String)> {
    all.iter().filter(|(name, text)| !RESERVED.contains(&name.as_str()) && text != "*").cloned()
}

fn odd(request: &str, reason: &str) -> Error {
    Error::Answer { request: request.to_owned(), reason: reason.to_owned() }
}
