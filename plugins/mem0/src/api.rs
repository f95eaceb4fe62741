//! The requests of both APIs and their answers, as `mem0ai` 2.2.1 sends and its server answers
//! them.

use memhost_sdk::http::{Client, Error, Request, filled, segment};
use memhost_sdk::meter;
use memhost_sdk::remote::{Record, Tag, utc};
use memhost_sdk::types::Score;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::config::{Api, Config};

/// Members of a memory's metadata that mem0's server uses itself.
const RESERVED: &str = "data hash role user_id agent_id run_id app_id actor_id attributed_to \
                        created_at updated_at \
    expiration_date text_lemmatized memory_type";
/// Members that are this provider's: the tag, and the key that a lost answer is looked for by.
const TAG: &str = "memhost";
pub(crate) const KEY: &str = "memhost_key";

/// mem0, as one user of it: the provider of a binding.
#[derive(Debug)]
pub struct Mem0 {
    pub(crate) config: Config,
    pub(crate) http: Client,
    /// The owner of the memories.
    pub(crate) user: String,
}

/// A memory as all routes show it.
#[derive(Debug, Deserialize)]
pub(crate) struct Memory {
    pub(crate) id: String,
    memory: Option<String>,
    pub(crate) user_id: Option<String>,
    score: Option<f64>,
    metadata: Option<Map<String, Value>>,
    created_at: Option<String>,
    updated_at: Option<String>,
    expiration_date: Option<String>,
}

impl From<Memory> for Record {
    fn from(memory: Memory) -> Self {
        let all = memory.metadata.unwrap_or_default();
        let tag = Tag::of_members(&all).unwrap_or_else(|| Tag::foreign(&all));
        let expires = memory.expiration_date.map(|date| format!("{date}T23:59:59"));
        Self {
            key: all.get(KEY).and_then(Value::as_str).map(str::to_owned),
            id: memory.id,
            text: memory.memory.unwrap_or_default(),
            tag: tag.or_times(memory.created_at.as_deref(), expires.as_deref()),
            // A fusion of several signals, whose scale depends on the query.
            score: memory.score.map(Score::rank),
            updated_at: memory.updated_at.as_deref().and_then(utc),
            ..Self::default()
        }
    }
}

/// The answer to adding, and of an event. `results` is there once it is done.
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

#[derive(Deserialize)]
pub(crate) struct List {
    pub(crate) results: Vec<Memory>,
    pub(crate) next: Option<String>,
}

impl Added {
    pub(crate) fn ids(&self) -> Vec<String> {
        self.results.iter().flatten().map(|memory| memory.id.clone()).collect()
    }
}

impl Mem0 {
    pub(crate) fn is_hosted(&self) -> bool {
        self.config.api == Api::Hosted
    }

    /// The route of each API, where `{}` is the memory.
    pub(crate) fn route(&self, hosted: &str, own: &str, id: &str) -> String {
        if self.is_hosted() { hosted } else { own }.replace("{}", &segment(id))
    }

    pub(crate) fn one(&self, id: &str) -> String {
        self.route("/v1/memories/{}/", "/memories/{}", id)
    }

    /// Adds what was said, or with `infer` what mem0's model makes of it.
    pub(crate) fn add_messages(
        &self,
        key: &str,
        messages: &Value,
        tag: &Tag,
        infer: bool,
    ) -> Result<Added, Error> {
        let body = filled(json!({"messages": messages, "user_id": self.user, "infer": infer,
            "metadata": metadata(Some(key), tag), "expiration_date": day_of_expiry(tag)}));
        let added: Added = self
            .http
            .post(&self.route("/v3/memories/add/", "/memories", ""))
            .json(&body)
            .answer()?;
        meter::charge("mem0", "add", self.config.add_microcents);
        if added.results.is_none() && added.event_id.is_none() {
            return Err(Error::unexpected(
                "adding a memory",
                "it names neither memories nor an event",
            ));
        }
        Ok(added)
    }

    /// The event that a capture with this key began. Its payload is what was sent.
    pub(crate) fn event_of(&self, key: &str) -> Result<Option<String>, Error> {
        if !self.is_hosted() {
            return Ok(None);
        }
        let events: Vec<Value> =
            self.http.get("/v1/events/").query("event_type", "ADD").at("/results").answer()?;
        let event = events.iter().find(|event| event["payload"]["metadata"][KEY] == key);
        Ok(event.and_then(|event| Some(event["id"].as_str()?.to_owned())))
    }

    /// The user's memories that have all of these members of the metadata.
    pub(crate) fn filters<'a>(
        &'a self,
        members: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Value {
        if self.is_hosted() {
            let members = members.map(|(name, text)| json!({"metadata": {name: text}}));
            return json!({
                "AND": std::iter::once(
                    json!({"user_id": self.user})
                ).chain(members).collect::<Vec<_>>(),
            });
        }
        members
            .chain([("user_id", self.user.as_str())])
            .map(|(name, text)| (name.to_owned(), json!(text)))
            .collect()
    }

    pub(crate) fn hits(&self, body: &Value) -> Result<Vec<Record>, Error> {
        let search =
            self.http.post(&self.route("/v3/memories/search/", "/search", "")).json(body).reads();
        let found: Vec<Memory> = search.at("/results").answer()?;
        Ok(found.into_iter().map(Record::from).collect())
    }

    /// The memories of a user of the open-source server.
    pub(crate) fn whole(&self, most: usize) -> Request<'_> {
        self.http.get("/memories").query("user_id", &self.user).query("top_k", &most)
    }
}

/// The metadata of a memory.
pub(crate) fn metadata(key: Option<&str>, tag: &Tag) -> Value {
    let mut metadata = json!({TAG: tag, KEY: key});
    for (name, text) in filterable(&tag.texts()) {
        metadata[name] = text.into();
    }
    metadata
}

/// mem0 knows days only.
pub(crate) fn day_of_expiry(tag: &Tag) -> Option<&str> {
    tag.expires_at.as_deref()?.get(..10)
}

/// What mem0 can filter by: names that it does not use itself, and no text that it takes for any.
pub(crate) fn filterable(all: &[(String, String)]) -> impl Iterator<Item = (&str, &str)> {
    let members = all.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    members.filter(|(name, text)| {
        !RESERVED.split(' ').chain([TAG, KEY]).any(|used| used == *name) && *text != "*"
    })
}
