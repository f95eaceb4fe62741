//! The requests of claude-mem's worker 13.25 and its answers.

use std::cell::{Cell, OnceCell};
use std::cmp::Reverse;
use std::collections::BTreeMap;

use memhost_sdk::http::{Client, Error};
use memhost_sdk::remote::{Listing, Record, Service, Tag, partition_of, plain, utc};
use memhost_sdk::types::{self, ForgetEffect};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use crate::config::Config;

/// The most observations of one answer.
const MOST: usize = 200;
/// Observations of one page of the list.
const PAGE: usize = 100;
/// The most words of a query that are asked for one by one: the longest ones.
const WORDS: usize = 8;
/// The most characters of a phrase: it is a part of the address.
const PHRASE: usize = 500;
/// Characters of the text that begin an observation's title.
const TITLE: usize = 60;

/// claude-mem, as one project of it.
#[derive(Debug)]
pub struct Api {
    pub(crate) config: Config,
    pub(crate) http: Client,
    project: OnceCell<String>,
    /// Whether what was last found was made by claude-mem's model.
    was_extracted: Cell<bool>,
}

/// An observation. Lists in it are texts in JSON.
#[derive(Debug, Deserialize)]
pub(crate) struct Observation {
    pub(crate) id: u64,
    project: String,
    pub(crate) memory_session_id: String,
    title: Option<String>,
    narrative: Option<String>,
    text: Option<String>,
    #[serde(default, deserialize_with = "list")]
    facts: Vec<String>,
    created_at: String,
    agent_id: Option<String>,
    generated_by_model: Option<String>,
    metadata: Option<String>,
}

fn list<'de, D: Deserializer<'de>>(text: D) -> Result<Vec<String>, D::Error> {
    let text = Option::<String>::deserialize(text)?.unwrap_or_default();
    Ok(serde_json::from_str(&text).unwrap_or_default())
}

/// What claude-mem does not keep of a record: in the observation's metadata as `memhost`.
#[derive(Serialize, Deserialize)]
struct Kept {
    key: String,
    tag: Tag,
    /// The text, where claude-mem would change it: it cuts white space off.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Deserialize)]
struct Found {
    observations: Vec<Observation>,
}

#[derive(Deserialize)]
struct Saved {
    id: u64,
}

#[derive(Deserialize)]
struct Health {
    version: String,
}

impl From<Observation> for Record {
    fn from(seen: Observation) -> Self {
        let metadata: Option<Value> = seen.metadata.and_then(|json| serde_json::from_str(&json).ok());
        let kept = metadata.as_ref().and_then(|all| serde_json::from_value::<Kept>(all.get("memhost")?.clone()).ok());
        let (id, updated_at) = (seen.id.to_string(), utc(&seen.created_at));
        if let Some(mut kept) = kept {
            kept.tag.created_at = kept.tag.created_at.or_else(|| updated_at.clone());
            let text = kept.text.or(seen.narrative).unwrap_or_default();
            return Self { id, key: Some(kept.key), text, tag: kept.tag, score: None, updated_at };
        }
        // Of somebody else, or of claude-mem's model.
        let facts = seen.facts.iter().map(|fact| format!("- {fact}")).collect::<Vec<_>>().join("\n");
        let parts = [seen.title.clone(), seen.narrative.or(seen.text), Some(facts)];
        let mut parts: Vec<_> = parts.into_iter().flatten().filter(|part| !part.trim().is_empty()).collect();
        parts.dedup();
        let tag = Tag {
            scope: seen.agent_id.as_deref().and_then(partition_of),
            summary: seen.title,
            metadata: metadata.filter(Value::is_object).map(|all| all.to_string()),
            created_at: updated_at.clone(),
            ..Tag::default()
        };
        Self { id, key: None, text: parts.join("\n\n"), tag, score: None, updated_at }
    }
}

impl Api {
    pub(crate) fn new(config: Config) -> Result<Self, types::Error> {
        let http = Client::new(&config.url)?;
        Ok(Self { config, http, project: OnceCell::new(), was_extracted: Cell::new(false) })
    }

    /// Whose observations these are: an instance gets the calls of one company only.
    pub(crate) fn belong_to(&self, company: &str) {
        self.project.get_or_init(|| self.config.project.clone().unwrap_or_else(|| format!("memhost-{company}")));
    }

    pub(crate) fn project(&self) -> &str {
        self.project.get().map_or("memhost", String::as_str)
    }

    pub(crate) fn version(&self) -> Result<String, Error> {
        Ok(self.http.get("/api/health").answer::<Health>()?.version)
    }

    /// The project's observations, the newest first, or those with a phrase.
    pub(crate) fn observations(&self, phrase: &str, offset: usize, most: usize) -> Result<Vec<Observation>, Error> {
        let request = self.http.get("/api/search").query("format", "json").query("type", "observations");
        let request = request.query("project", self.project()).query("limit", &most).query("offset", &offset);
        let order = if phrase.is_empty() { "date_desc" } else { "relevance" };
        let phrase: String = phrase.chars().take(PHRASE).collect();
        Ok(request.query("query", &phrase).query("orderBy", order).answer::<Found>()?.observations)
    }

    /// The observations of this project with these numbers.
    pub(crate) fn batch(&self, ids: &[u64]) -> Result<Vec<Record>, Error> {
        let body = json!({"ids": ids, "project": self.project()});
        let found: Vec<Observation> = self.http.post("/api/observations/batch").json(&body).reads().answer()?;
        Ok(found.into_iter().map(Record::from).collect())
    }

    /// What was seen around an observation, before and after it. claude-mem tells it as text, with a table of numbers.
    pub(crate) fn timeline(&self, id: u64) -> Result<Vec<u64>, Error> {
        let request = self.http.get("/api/timeline").query("anchor", &id).query("project", self.project());
        let answer: Value = request.query("depth_before", "10").query("depth_after", "10").answer()?;
        let text = answer["content"][0]["text"].as_str().ok_or_else(|| odd("GET /api/timeline", "it has no text"))?;
        let number = |line: &str| line.strip_prefix("| #")?.split_once(' ')?.0.parse().ok();
        Ok(text.lines().filter_map(number).filter(|number| *number != id).collect())
    }
}

impl Service for Api {
    const ONLY_ADDS: bool = true;

    fn is_id(&self, id: &str) -> bool {
        (1..=15).contains(&id.len()) && !id.starts_with('0') && id.bytes().all(|byte| byte.is_ascii_digit())
    }

    /// claude-mem answers with the observation that is there if title and text are the same. The title has the key and what
    /// tells one tag from another.
    fn add(&self, key: &str, text: &str, tag: &Tag) -> Result<String, Error> {
        let kept = Kept { key: key.to_owned(), tag: tag.clone(), text: (text.trim() != text).then(|| text.to_owned()) };
        let start: String = tag.summary.as_deref().unwrap_or(text.trim()).chars().take(TITLE).collect();
        let start = start.split_whitespace().collect::<Vec<_>>().join(" ");
        let title = format!("{start} [{} {:08x}]", plain(key), fingerprint(&json!(kept).to_string()));
        let body = json!({"text": text, "title": title, "project": self.project(), "metadata": {"memhost": kept}});
        let saved: Saved = self.http.post("/api/memory/save").json(&body).answer()?;
        Ok(saved.id.to_string())
    }

    /// Among the newest, which is where a lost answer leads.
    fn written(&self, key: &str, _: &str) -> Result<Vec<Record>, Error> {
        let mut newest: Vec<_> = self.observations("", 0, PAGE)?.into_iter().map(Record::from).collect();
        newest.retain(|record| record.key.as_deref() == Some(key));
        Ok(newest)
    }

    fn find(&self, id: &str) -> Result<Option<Record>, Error> {
        let path = format!("/api/observation/{id}");
        match self.http.get(&path).answer_if_found::<Observation>()? {
            Some(other) if other.id.to_string() != id => Err(odd(&format!("GET {path}"), "it is another observation")),
            found => {
                let own = found.filter(|seen| seen.project == self.project());
                if let Some(own) = &own {
                    self.was_extracted.set(own.generated_by_model.is_some());
                }
                Ok(own.map(Record::from))
            }
        }
    }

    fn replace(&self, old: &Record, _: &str, _: &Tag) -> Result<(), Error> {
        Err(odd("replacing an observation", &format!("claude-mem does not change {}", old.id)))
    }

    fn delete(&self, id: &str) -> Result<(), Error> {
        self.http.delete(&format!("/api/observation/{id}")).answer_if_found::<Value>().map(drop)
    }

    /// What the model saw stays in claude-mem's list of tool uses, and Chroma keeps what was deleted.
    fn left_of(&self, _: &str) -> Result<ForgetEffect, Error> {
        let stays = self.was_extracted.get() || self.config.semantic;
        Ok(if stays { ForgetEffect::HistoryKept } else { ForgetEffect::Hard })
    }

    /// claude-mem finds the query as one phrase. Each of its words is asked for, too: a word that few observations have counts
    /// more, and the whole phrase most.
    fn search(&self, query: &str, _: &[(String, String)], most: usize) -> Result<Vec<Record>, Error> {
        let whole = self.observations(query, 0, most)?;
        let lower = query.to_lowercase();
        let mut words: Vec<_> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        words.sort_by_key(|word| (Reverse(word.len()), *word));
        words.dedup();
        if self.config.semantic || words == [lower.trim()] || whole.len() >= most {
            return Ok(whole.into_iter().map(Record::from).collect());
        }
        let mut found: BTreeMap<u64, (f64, Observation)> = BTreeMap::new();
        let mut count = |hits: Vec<Observation>, share: f64| {
            let weight = share / (hits.len() + 1) as f64;
            for hit in hits {
                found.entry(hit.id).or_insert((0.0, hit)).0 += weight;
            }
        };
        count(whole, WORDS as f64);
        for word in words.into_iter().take(WORDS) {
            count(self.observations(word, 0, MOST)?, 1.0);
        }
        let mut hits: Vec<_> = found.into_values().collect();
        hits.sort_by(|a, b| b.0.total_cmp(&a.0));
        Ok(hits.into_iter().take(most).map(|(_, seen)| seen.into()).collect())
    }

    fn most_hits(&self) -> usize {
        MOST
    }

    fn list(&self, page: u32) -> Result<(Vec<Record>, bool), Error> {
        let found = self.observations("", (page as usize - 1) * PAGE, PAGE)?;
        let is_full = found.len() == PAGE;
        Ok((found.into_iter().map(Record::from).collect(), is_full))
    }

    fn listing(&self) -> Listing {
        Listing::Pages
    }
}

/// A number that tells texts apart, FNV-1a. Nothing but which observations claude-mem takes for one depends on it.
fn fingerprint(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

pub(crate) fn odd(request: &str, reason: &str) -> Error {
    Error::Answer { request: request.to_owned(), reason: reason.to_owned() }
}
