//! The requests and their answers, as botocore's model of `bedrock-agentcore` has them.

use std::cell::Cell;
use std::time::{SystemTime, UNIX_EPOCH};

use memhost_sdk::http::{Client, Error, Request, segment};
use memhost_sdk::remote::{Record, Tag, of_unix};
use memhost_sdk::types::Score;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::config::Config;
use crate::{metadata, place};

/// The most hits of one search, and a page of a list.
pub(crate) const PAGE: usize = 100;
/// The most pages that one call reads.
pub(crate) const PAGES: usize = 20;

/// One memory resource: the provider of a binding.
#[derive(Debug)]
pub struct AgentCore {
    pub(crate) config: Config,
    pub(crate) http: Client,
    /// The company of the records.
    pub(crate) company: String,
}

/// How many requests may still be sent.
#[derive(Debug)]
pub(crate) struct Budget(Cell<usize>);

impl Budget {
    pub(crate) fn new(requests: usize) -> Self {
        Self(Cell::new(requests))
    }

    /// Whether another one may be sent; it is.
    pub(crate) fn spend(&self) -> bool {
        self.0.replace(self.0.get().saturating_sub(1)) > 0
    }
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
        self.namespaces
            .iter()
            .any(|namespace| place::read(namespace).is_some_and(|(_, is_own)| is_own))
    }
}

impl AgentCore {
    fn path(&self, rest: &str) -> String {
        format!("/memories/{}/{rest}", segment(&self.config.memory_id))
    }

    pub(crate) fn post(&self, rest: &str, body: &Value) -> Request<'_> {
        self.http.post(&self.path(rest)).json(body)
    }

    pub(crate) fn get(&self, rest: &str) -> Request<'_> {
        self.http.get(&self.path(rest))
    }

    pub(crate) fn delete_at(&self, rest: &str) -> Result<(), Error> {
        self.http.delete(&self.path(rest)).answer_if_found::<Value>().map(drop)
    }

    /// The items of a list, page by page, and whether these are all.
    pub(crate) fn pages<T: DeserializeOwned>(
        &self,
        rest: &str,
        mut body: Value,
        items: &str,
        budget: &Budget,
    ) -> Result<(Vec<T>, bool), Error> {
        let mut all = Vec::new();
        while budget.spend() {
            let Some(mut page) = self.post(rest, &body).reads().answer_if_found::<Value>()? else {
                return Ok((all, true));
            };
            // Not by index: that ends the guest where the answer is no object.
            let mut taken = |name: &str| page.get_mut(name).map(Value::take).unwrap_or_default();
            let found = serde_json::from_value::<Vec<T>>(taken(items));
            all.extend(found.map_err(|error| Error::unexpected(rest, &error.to_string()))?);
            match taken("nextToken") {
                Value::String(next) => body["nextToken"] = next.into(),
                _ => return Ok((all, true)),
            }
        }
        Ok((all, false))
    }

    /// Records below a namespace, and whether these are all.
    pub(crate) fn records_below(
        &self,
        path: &str,
        key: Option<&str>,
    ) -> Result<(Vec<MemoryRecord>, bool), Error> {
        let mut body = json!({"namespacePath": path, "maxResults": PAGE});
        if let Some(key) = key {
            body["metadataFilters"] = filters(std::iter::once((metadata::KEY, key)));
        }
        self.pages("memoryRecords", body, "memoryRecordSummaries", &Budget::new(PAGES))
    }

    /// A record as this provider has it. `None` if it is another company's.
    pub(crate) fn record(&self, found: MemoryRecord) -> Option<Record> {
        let (scope, is_own) =
            found.namespaces.iter().find_map(|namespace| place::read(namespace))?;
        let is_ours = scope.company_id == self.company;
        let (key, tag) = metadata::read(found.metadata.as_ref());
        let mut tag = tag.unwrap_or_default();
        tag.scope.get_or_insert(scope);
        is_ours.then(|| Record {
            id: found.id,
            key: key.as_deref().and_then(place::unescaped),
            text: found.content.text,
            tag: tag.or_times(of_unix(found.created_at).as_deref(), None),
            score: found.score.map(Score::similarity),
            // The time is this machine's, and the other one AgentCore's.
            updated_at: of_unix(found.timestamp.unwrap_or_default().max(found.created_at)),
            is_extracted: !is_own,
        })
    }

    pub(crate) fn records(&self, found: Vec<MemoryRecord>) -> Vec<Record> {
        found.into_iter().filter_map(|record| self.record(record)).collect()
    }

    /// Sends a batch of one record, and answers its id.
    pub(crate) fn batch(&self, rest: &str, record: &Value) -> Result<String, Error> {
        let answer: Outcomes = self.post(rest, &json!({"records": [record]})).answer()?;
        match (
            answer.successful_records.into_iter().next(),
            answer.failed_records.into_iter().next(),
        ) {
            (Some(done), None) => Ok(done.memory_record_id),
            (_, Some(Outcome { error_code: status, error_message, .. })) => Err(Error::Status {
                request: format!("POST {}", self.path(rest)),
                status: status.unwrap_or(500),
                message: error_message
                    .unwrap_or_else(|| "the batch failed without a reason".to_owned()),
                retry_after: None,
            }),
            _ => Err(Error::unexpected(rest, "it tells no outcome")),
        }
    }

    /// The stored form of a record. [`Service::takes`] has seen that the tag fits.
    pub(crate) fn stored(&self, key: Option<&str>, text: &str, tag: &Tag) -> Value {
        let key = key.map(place::escaped);
        let metadata = metadata::write(key.as_deref(), tag, &self.config.indexed);
        json!({"content": {"text": text}, "timestamp": now(), "metadata": metadata})
    }
}

/// Now, in seconds since 1970, to the millisecond.
pub(crate) fn now() -> f64 {
    (SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1_000.0)
        .floor()
        / 1_000.0
}

pub(crate) fn filters<'a>(members: impl Iterator<Item = (&'a str, &'a str)>) -> Value {
    let equal = |(name, text): (&str, &str)| {
        json!({
            "left": {"metadataKey": name}, "operator": "EQUALS_TO",
            "right": {"metadataValue": {"stringValue": text}},
        })
    };
    members.map(equal).collect()
}
