//! AgentCore Memory in memory, with the routes that the provider uses: a smaller copy of the
//! stand-in in which botocore checks each request and answer (`tests/vendors/agentcore`).

use std::collections::BTreeSet;

use memhost_sdk::testing::faults::Stand;
use memhost_sdk::testing::http::{Answer, Sent};
use serde_json::{Value, json};

/// What it holds.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) records: Vec<Value>,
    pub(crate) events: Vec<Value>,
    made: usize,
}

fn missing() -> Answer {
    Answer::json(404, json!({"message": "it is not there"}))
}

fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

fn unescaped(segment: &str) -> String {
    let mut parts = segment.split('%');
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| {
        let byte = u8::from_str_radix(&part[..2], 16).unwrap();
        format!("{text}{}{}", char::from(byte), &part[2..])
    })
}

impl State {
    fn make(&mut self, mut record: Value) -> Value {
        self.made += 1;
        let id = format!("mem-{:036}", self.made);
        record["memoryRecordId"] = id.as_str().into();
        record["createdAt"] = record["timestamp"].clone();
        record.as_object_mut().unwrap().remove("requestIdentifier");
        self.records.push(record);
        id.into()
    }

    /// Extracts what each event says.
    pub(crate) fn extract(&mut self) {
        for event in self.events.clone() {
            let namespace = format!("/memhost/{}/facts", event["actorId"].as_str().unwrap());
            let content = &event["payload"][0]["conversational"]["content"];
            self.make(json!({
                "content": content, "namespaces": [namespace],
                "memoryStrategyId": "facts-0123456789",
                "timestamp": event["eventTimestamp"].as_f64().unwrap() + 1.0, "metadata": {},
            }));
        }
    }

    fn below(&self, path: &str, filters: &Value) -> Vec<Value> {
        let fits = |record: &Value, filter: &Value| {
            let name = filter["left"]["metadataKey"].as_str().unwrap();
            record["metadata"][name] == filter["right"]["metadataValue"]
        };
        let is_below = |record: &&Value| {
            record["namespaces"][0].as_str().unwrap().starts_with(path)
                && filters.as_array().into_iter().flatten().all(|filter| fits(record, filter))
        };
        self.records.iter().filter(is_below).cloned().collect()
    }

    fn batch(&mut self, body: &Value, act: impl Fn(&mut Self, &Value) -> Option<Value>) -> Answer {
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        for record in body["records"].as_array().unwrap() {
            match act(self, record) {
                Some(id) => done.push(json!({"memoryRecordId": id, "status": "SUCCEEDED"})),
                None => failed.push(json!({
                    "memoryRecordId": record["memoryRecordId"], "status": "FAILED",
                    "errorCode": 404, "errorMessage": "Memory record not found",
                })),
            }
        }
        Answer::json(200, json!({"successfulRecords": done, "failedRecords": failed}))
    }

    fn at(&self, id: &Value) -> Option<usize> {
        self.records.iter().position(|record| record["memoryRecordId"] == *id)
    }
}

impl Stand for State {
    fn answer(&mut self, sent: &Sent) -> Answer {
        let body = &sent.body;
        let path: Vec<String> = sent.path.split('/').skip(3).map(unescaped).collect();
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let space = body["namespacePath"].as_str().unwrap_or_default();
        let all = |name: &str, of: &dyn Fn(&Value) -> Value, wanted: &dyn Fn(&&Value) -> bool| {
            let found: Vec<Value> = self.events.iter().filter(wanted).map(of).collect();
            Answer::json(200, json!({name: found}))
        };
        match (sent.method, path.as_slice()) {
            ("POST", ["memoryRecords", "batchCreate"]) => {
                self.batch(body, |state, new| Some(state.make(new.clone())))
            }
            ("POST", ["memoryRecords", "batchUpdate"]) => self.batch(body, |state, new| {
                let at = state.at(&new["memoryRecordId"])?;
                state.records[at].as_object_mut().unwrap().extend(new.as_object().unwrap().clone());
                Some(new["memoryRecordId"].clone())
            }),
            ("POST", ["memoryRecords", "batchDelete"]) => self.batch(body, |state, old| {
                let at = state.at(&old["memoryRecordId"])?;
                Some(state.records.remove(at)["memoryRecordId"].clone())
            }),
            ("POST", ["memoryRecords"]) => Answer::json(
                200,
                json!({"memoryRecordSummaries": self.below(space, &body["metadataFilters"])}),
            ),
            ("POST", ["retrieve"]) => {
                let asked = words(body["searchCriteria"]["searchQuery"].as_str().unwrap());
                let like = |record: &Value| {
                    words(record["content"]["text"].as_str().unwrap()).intersection(&asked).count()
                };
                let mut hits = self.below(space, &body["searchCriteria"]["metadataFilters"]);
                hits.retain(|record| like(record) > 0);
                hits.sort_by_key(|record| std::cmp::Reverse(like(record)));
                for hit in &mut hits {
                    hit["score"] = (like(hit) as f64 / asked.len() as f64).into();
                }
                Answer::json(200, json!({"memoryRecordSummaries": hits}))
            }
            ("GET", ["memoryRecord", id]) => match self.at(&(*id).into()) {
                Some(at) => Answer::json(200, json!({"memoryRecord": self.records[at]})),
                None => missing(),
            },
            ("DELETE", ["memoryRecords", id]) => match self.at(&(*id).into()) {
                Some(at) => Answer::json(
                    200,
                    json!({"memoryRecordId": self.records.remove(at)["memoryRecordId"]}),
                ),
                None => missing(),
            },
            ("POST", ["events"]) => {
                let same = self
                    .events
                    .iter()
                    .find(|event| event["clientToken"] == body["clientToken"])
                    .cloned();
                let event = same.unwrap_or_else(|| {
                    let mut new = body.clone();
                    new["eventId"] = format!("{:04}#event", self.events.len()).into();
                    self.events.push(new.clone());
                    new
                });
                Answer::json(201, json!({"event": event}))
            }
            ("GET", ["actor", _, "sessions", _, "events", id]) => {
                match self.events.iter().find(|event| event["eventId"] == *id) {
                    Some(event) => Answer::json(200, json!({"event": event})),
                    None => missing(),
                }
            }
            ("DELETE", ["actor", _, "sessions", _, "events", id]) => {
                self.events.retain(|event| event["eventId"] != *id);
                Answer::json(200, json!({"eventId": id}))
            }
            ("POST", ["actors"]) => {
                all("actorSummaries", &|event| json!({"actorId": event["actorId"]}), &|_| true)
            }
            ("POST", ["actor", actor, "sessions"]) => all(
                "sessionSummaries",
                &|event| json!({"sessionId": event["sessionId"]}),
                &|event| event["actorId"] == *actor,
            ),
            ("POST", ["actor", _, "sessions", session]) => {
                all("events", &|event| json!({"eventId": event["eventId"]}), &|event| {
                    event["sessionId"] == *session
                })
            }
            ("POST", ["extractionJobs"]) => Answer::json(200, json!({"jobs": []})),
            _ => panic!("AgentCore has no such route: {} {}", sent.method, sent.path),
        }
    }

    fn texts(&self) -> Vec<String> {
        self.records
            .iter()
            .map(|record| record["content"]["text"].as_str().unwrap().to_owned())
            .collect()
    }

    fn other_ids(answer: &str) -> String {
        answer.replace("mem-0", "mem-9").replace("#event", "#other")
    }
}
