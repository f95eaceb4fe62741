//! The requests and their answers, as botocore's model of `bedrock-agentcore` has them.

use std::cell::{Cell, OnceCell};
use std::time::{SystemTime, UNIX_EPOCH};

use memhost_sdk::http::{Client, Error, Request, segment};
use memhost_sdk::meter;
use memhost_sdk::remote::{Listing, Record, Service, Tag, of_unix};
use memhost_sdk::types::{self, ForgetEffect, Score};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::config::Config;
use crate::{metadata, place};

/// The most hits of one search, and a page of a list.
const PAGE: usize = 100;
/// The most pages that one call reads.
const PAGES: usize = 20;
/// The longest text of a record, and the longest query, in characters.
const LONGEST_TEXT: usize = 16_000;
const LONGEST_QUERY: usize = 10_000;

/// One memory resource.
#[derive(Debug)]
pub struct Api {
    pub(crate) config: Config,
    http: Client,
    company: OnceCell<String>,
    /// Whether the record that was found last was extracted, so that its events have what it says.
    was_extracted: Cell<bool>,
}

/// A record, whole or in a list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MemoryRecord {
    #[serde(rename = "memoryRecordId")]
    pub(crate) id: String,
    content: Content,
    #[serde(default)]
    namespaces: Vec<String>,
    pub(crate) created_at: f64,
    timestamp: Option<f64>,
    score: Option<f64>,
    metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize)]
struct Content {
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    memory_record: MemoryRecord,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcomes {
    successful_records: Vec<Outcome>,
    failed_records: Vec<Outcome>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    memory_record_id: String,
    error_code: Option<u16>,
    error_message: Option<String>,
}

impl MemoryRecord {
    /// Whether it was written as it is.
    pub(crate) fn is_own(&self) -> bool {
        self.namespaces.iter().any(|namespace| place::read(namespace).is_some_and(|(_, is_own)| is_own))
    }
}

impl Api {
    pub(crate) fn new(config: Config) -> Result<Self, types::Error> {
        let http = Client::new(&config.url)?.signed("AWS_KEY");
        Ok(Self { http, config, company: OnceCell::new(), was_extracted: Cell::new(false) })
    }

    /// Whose records these are: an instance gets the calls of one company only.
    pub(crate) fn belong_to(&self, company: &str) {
        self.company.get_or_init(|| company.to_owned());
    }

    pub(crate) fn company(&self) -> &str {
        self.company.get().map_or("", String::as_str)
    }

    fn path(&self, rest: &str) -> String {
        format!("/memories/{}/{rest}", segment(&self.config.memory_id))
    }

    pub(crate) fn post(&self, rest: &str, body: &Value) -> Request<'_> {
        self.http.post(&self.path(rest)).json(body)
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, rest: &str) -> Result<Option<T>, Error> {
        self.http.get(&self.path(rest)).answer_if_found()
    }

    pub(crate) fn delete_at(&self, rest: &str) -> Result<(), Error> {
        self.http.delete(&self.path(rest)).answer_if_found::<Value>().map(drop)
    }

    /// The items of a list, page by page, and whether these are all. `spend` says whether another request may be sent.
    pub(crate) fn pages<T: DeserializeOwned>(
        &self,
        rest: &str,
        mut body: Value,
        items: &str,
        spend: impl Fn() -> bool,
    ) -> Result<(Vec<T>, bool), Error> {
        let mut all = Vec::new();
        while spend() {
            let Some(mut page) = self.post(rest, &body).reads().answer_if_found::<Value>()? else {
                return Ok((all, true));
            };
            let found = serde_json::from_value::<Vec<T>>(page[items].take());
            all.extend(found.map_err(|error| odd(rest, &error.to_string()))?);
            match page["nextToken"].take() {
                Value::String(next) => body["nextToken"] = next.into(),
                _ => return Ok((all, true)),
            }
        }
        Ok((all, false))
    }

    /// Records below a namespace.
    pub(crate) fn records_below(&self, path: &str, key: Option<&str>) -> Result<Vec<MemoryRecord>, Error> {
        let mut body = json!({"namespacePath": path, "maxResults": PAGE});
        if let Some(key) = key {
            body["metadataFilters"] = filters(std::iter::once((metadata::KEY, key)));
        }
        let left = Cell::new(PAGES);
        let spend = || left.replace(left.get().saturating_sub(1)) > 0;
        Ok(self.pages("memoryRecords", body, "memoryRecordSummaries", spend)?.0)
    }

    /// A record as this provider has it; none where it is another company's.
    fn record(&self, found: MemoryRecord) -> Option<Record> {
        let (scope, is_own) = found.namespaces.iter().find_map(|namespace| place::read(namespace))?;
        let is_ours = scope.company_id == self.company();
        self.was_extracted.set(!is_own);
        let (key, tag) = metadata::read(found.metadata.as_ref());
        let mut tag = tag.unwrap_or_default();
        tag.scope.get_or_insert(scope);
        tag.created_at = tag.created_at.or_else(|| of_unix(found.created_at));
        let score = found.score.filter(|score| score.is_finite()).map(|score| Score::Similarity(score.clamp(0.0, 1.0)));
        is_ours.then(|| Record {
            id: found.id,
            key: key.as_deref().and_then(place::unescaped),
            text: found.content.text,
            tag,
            score,
            // The time is this machine's, and the other one AgentCore's.
            updated_at: of_unix(found.timestamp.unwrap_or_default().max(found.created_at)),
        })
    }

    /// Sends a batch of one record, and answers its id.
    fn batch(&self, rest: &str, record: &Value) -> Result<String, Error> {
        let answer: Outcomes = self.post(rest, &json!({"records": [record]})).answer()?;
        match (answer.successful_records.into_iter().next(), answer.failed_records.into_iter().next()) {
            (Some(done), None) => Ok(done.memory_record_id),
            (_, Some(Outcome { error_code: status, error_message, .. })) => Err(Error::Status {
                request: format!("POST {}", self.path(rest)),
                status: status.unwrap_or(500),
                message: error_message.unwrap_or_else(|| "the batch failed without a reason".to_owned()),
                retry_after: None,
            }),
            _ => Err(odd(rest, "it tells no outcome")),
        }
    }

    /// What is stored of a record. [`Service::takes`] has seen that the tag fits.
    fn stored(&self, key: Option<&str>, text: &str, tag: &Tag) -> Value {
        let key = key.map(place::escaped);
        let metadata = metadata::write(key.as_deref(), tag, &self.config.indexed);
        json!({"content": {"text": text}, "timestamp": now(), "metadata": metadata})
    }

    pub(crate) fn ping(&self) -> Result<(), Error> {
        let body = json!({"namespacePath": "/memhost/", "maxResults": 1});
        self.post("memoryRecords", &body).reads().answer::<Value>().map(drop)
    }
}

impl Service for Api {
    fn takes(&self, text: &str, tag: &Tag) -> Result<(), types::Error> {
        let id = tag.id.as_deref().unwrap_or_default();
        let problem = if text.chars().count() > LONGEST_TEXT {
            ("text", "has more than the 16,000 characters that AgentCore takes")
        } else if !metadata::fits(&format!("id_2f{}", place::escaped(id))) {
            (
                "id",
                "is too long for AgentCore: at most 250 letters and digits, where any other character counts as three",
            )
        } else if metadata::write(None, tag, &[]).is_none() {
            ("metadata", "is too long for AgentCore, with source and summary: about 2,400 bytes in all")
        } else {
            return Ok(());
        };
        Err(types::Error::invalid(problem.0, problem.1))
    }

    fn is_id(&self, id: &str) -> bool {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        id.starts_with("mem-") && (40..=50).contains(&id.len()) && id.bytes().all(fits)
    }

    fn add(&self, key: &str, text: &str, tag: &Tag) -> Result<String, Error> {
        let mut record = self.stored(Some(key), text, tag);
        record["requestIdentifier"] = "memhost".into();
        record["namespaces"] = tag.scope.iter().map(place::records).collect();
        let id = self.batch("memoryRecords/batchCreate", &record)?;
        meter::charge("agentcore", "add", self.config.add_microcents);
        Ok(id)
    }

    fn written(&self, key: &str, _: &str) -> Result<Vec<Record>, Error> {
        let found = self.records_below(&place::path(self.company()), Some(&place::escaped(key)))?;
        Ok(found
            .into_iter()
            .filter_map(|record| self.record(record))
            .filter(|record| record.key.as_deref() == Some(key))
            .collect())
    }

    fn find(&self, id: &str) -> Result<Option<Record>, Error> {
        match self.get::<Found>(&format!("memoryRecord/{}", segment(id)))? {
            Some(other) if other.memory_record.id != id => Err(odd("memoryRecord", "it is another record")),
            found => Ok(found.and_then(|found| self.record(found.memory_record))),
        }
    }

    fn replace(&self, old: &Record, text: &str, tag: &Tag) -> Result<(), Error> {
        let mut record = self.stored(old.key.as_deref(), text, tag);
        record["memoryRecordId"] = old.id.as_str().into();
        self.batch("memoryRecords/batchUpdate", &record).map(drop)
    }

    fn delete(&self, id: &str) -> Result<(), Error> {
        self.delete_at(&format!("memoryRecords/{}", segment(id)))
    }

    fn left_of(&self, _: &str) -> Result<ForgetEffect, Error> {
        // Of an extracted record the events stay until they expire.
        Ok(if self.was_extracted.get() { ForgetEffect::HistoryKept } else { ForgetEffect::Hard })
    }

    fn search(&self, query: &str, members: &[(String, String)], most: usize) -> Result<Vec<Record>, Error> {
        let query: String = query.chars().take(LONGEST_QUERY).collect();
        let mut criteria = json!({"searchQuery": query, "topK": most});
        let can_filter = |(name, text): &&(String, String)| self.config.indexed.contains(name) && metadata::fits(text);
        let asked: Vec<_> =
            members.iter().filter(can_filter).take(5).map(|(name, text)| (name.as_str(), text.as_str())).collect();
        if !asked.is_empty() {
            criteria["metadataFilters"] = filters(asked.into_iter());
        }
        let body =
            json!({"namespacePath": place::path(self.company()), "searchCriteria": criteria, "maxResults": most});
        let mut found: Value = self.post("retrieve", &body).reads().answer()?;
        meter::charge("agentcore", "search", self.config.search_microcents);
        let found: Vec<MemoryRecord> = serde_json::from_value(found["memoryRecordSummaries"].take())
            .map_err(|error| odd("retrieve", &error.to_string()))?;
        Ok(found.into_iter().filter_map(|record| self.record(record)).collect())
    }

    fn most_hits(&self) -> usize {
        PAGE
    }

    fn list(&self, _: u32) -> Result<(Vec<Record>, bool), Error> {
        let all = self.records_below(&place::path(self.company()), None)?;
        Ok((all.into_iter().filter_map(|record| self.record(record)).collect(), false))
    }

    fn listing(&self) -> Listing {
        Listing::Whole(PAGE * PAGES)
    }
}

/// Now, in seconds since 1970, to the millisecond.
pub(crate) fn now() -> f64 {
    (SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1_000.0).floor() / 1_000.0
}

fn filters<'a>(members: impl Iterator<Item = (&'a str, &'a str)>) -> Value {
    let equal = |(name, text): (&str, &str)| json!({"left": {"metadataKey": name}, "operator": "EQUALS_TO", "right": {"metadataValue": {"stringValue": text}}});
    members.map(equal).collect()
}

pub(crate) fn odd(request: &str, reason: &str) -> Error {
    Error::Answer { request: request.to_owned(), reason: reason.to_owned() }
}
