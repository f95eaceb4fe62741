//! mem0 in memory, with the routes of both APIs that the provider uses. Its ids count, so that a
//! test can name them.

use std::cell::RefCell;
use std::rc::Rc;

use memhost_sdk::testing::http::{Answer, Sent, serve};
use serde_json::{Value, json};

/// What it holds.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) memories: Vec<Value>,
    pub(crate) history: Vec<Value>,
    /// The status that every event has, with the memories that it made.
    pub(crate) event: Value,
    pub(crate) events: Vec<Value>,
    pub(crate) keeps_history: bool,
    made: usize,
}

pub(crate) type Server = Rc<RefCell<State>>;

/// Serves it in this thread.
pub(crate) fn start() -> Server {
    let server = Server::default();
    server.borrow_mut().keeps_history = true;
    let inner = Rc::clone(&server);
    serve(move |sent| Ok(inner.borrow_mut().answer(sent)));
    server
}

impl State {
    pub(crate) fn texts(&self) -> Vec<&str> {
        self.memories.iter().filter_map(|memory| memory["memory"].as_str()).collect()
    }

    pub(crate) fn answer(&mut self, sent: &Sent) -> Answer {
        let hosted = sent.path.starts_with("/v");
        let path: Vec<&str> = sent
            .path
            .trim_matches('/')
            .split('/')
            .filter(|part| !["v1", "v3"].contains(part))
            .collect();
        let body = &sent.body;
        let found = |results: Vec<Value>| {
            Answer::json(200, json!({"count": results.len(), "next": null, "results": results}))
        };
        match (sent.method, path.as_slice()) {
            ("GET", ["ping"]) => Answer::json(200, json!({"status": "ok"})),
            ("GET", ["events"]) => found(self.events.clone()),
            ("GET", ["event", id]) => match self.events.iter().any(|event| event["id"] == *id) {
                true => Answer::json(200, self.event.clone()),
                false => Answer::json(404, json!({"error": "Event not found"})),
            },
            ("POST", ["memories", "add"]) if body["infer"] != false => {
                let id = self.id();
                self.events.push(json!({"id": id, "payload": body}));
                Answer::json(200, json!({"event_id": id, "status": "PENDING"}))
            }
            ("POST", ["memories", "add"]) => {
                Answer::json(200, json!({"results": self.add(body), "status": "SUCCEEDED"}))
            }
            ("POST", ["memories"]) if !hosted => {
                Answer::json(200, json!({"results": self.add(body)}))
            }
            ("POST", ["memories"]) => self.page(&sent.query, body),
            ("POST", ["memories", "search"] | ["search"]) => {
                let top_k = body["top_k"].as_u64().unwrap() as usize;
                let fitting = |memory: &&Value| fits(memory, &body["filters"]);
                let hits = self.memories.iter().filter(fitting).take(top_k).enumerate().map(
                    |(at, memory)| {
                        let mut memory = memory.clone();
                        memory["score"] = json!(1.0 / (at + 1) as f64);
                        memory
                    },
                );
                Answer::json(200, json!({"results": hits.collect::<Vec<_>>()}))
            }
            ("GET", ["memories"]) => found(
                self.memories
                    .iter()
                    .filter(|memory| sent.query.contains(memory["user_id"].as_str().unwrap()))
                    .cloned()
                    .collect(),
            ),
            ("DELETE", ["memories"]) => {
                self.memories.clear();
                Answer::json(200, json!({"message": "done"}))
            }
            (method, ["memories", id]) => self.one(method, id, body, hosted),
            ("GET", ["memories", id, "history"]) => Answer::json(
                200,
                self.history.iter().filter(|entry| entry["memory_id"] == *id).cloned().collect(),
            ),
            _ => panic!("mem0 has no such route: {} {}", sent.method, sent.path),
        }
    }

    fn id(&mut self) -> String {
        self.made += 1;
        format!("00000000-0000-4000-8000-{:012}", self.made)
    }

    fn add(&mut self, body: &Value) -> Vec<Value> {
        let texts: Vec<String> = body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["content"].as_str().unwrap().to_owned())
            .collect();
        texts
            .into_iter()
            .map(|text| {
                let id = self.id();
                self.memories.push(json!({
                    "id": id, "memory": text, "user_id": body["user_id"],
                    "metadata": body["metadata"],
                    "created_at": "2026-11-23T13:57:02.065615+00:00",
                    "updated_at": "2026-11-23T13:57:02.065615+00:00",
                    "expiration_date": body["expiration_date"],
                }));
                self.history.push(
                    json!({"memory_id": id, "old_memory": null, "new_memory": text, "event": "ADD"})
                );
                json!({"id": id, "memory": text, "event": "ADD"})
            })
            .collect()
    }

    fn one(&mut self, method: &str, id: &str, body: &Value, hosted: bool) -> Answer {
        let Some(at) = self.memories.iter().position(|memory| memory["id"] == id) else {
            return match method {
                "GET" if !hosted => Answer::json(200, Value::Null),
                _ => Answer::json(404, json!({"detail": format!("Memory with id {id} not found")})),
            };
        };
        match method {
            "GET" => Answer::json(200, self.memories[at].clone()),
            "PUT" => {
                self.memories[at]["memory"] = body["text"].clone();
                let all = body["metadata"].as_object().unwrap().clone();
                self.memories[at]["metadata"].as_object_mut().unwrap().extend(all);
                self.memories[at]["expiration_date"] = body["expiration_date"].clone();
                Answer::json(200, json!({"message": "Memory updated successfully!"}))
            }
            _ => {
                self.memories.remove(at);
                if !self.keeps_history {
                    self.history.retain(|entry| entry["memory_id"] != id);
                }
                Answer::json(200, json!({"message": "Memory deleted successfully"}))
            }
        }
    }

    fn page(&self, query: &str, body: &Value) -> Answer {
        let number = |name: &str| {
            query
                .split('&')
                .find_map(|part| part.strip_prefix(name)?.parse::<usize>().ok())
                .unwrap()
        };
        let (page, size) = (number("page="), number("page_size="));
        let all: Vec<&Value> =
            self.memories.iter().filter(|memory| fits(memory, &body["filters"])).collect();
        let here: Vec<_> = all.iter().skip((page - 1) * size).take(size).collect();
        let next = (page * size < all.len())
            .then(|| format!("https://api.mem0.ai/v3/memories/?page={}", page + 1));
        Answer::json(
            200,
            json!({"count": all.len(), "next": next, "previous": null, "results": here}),
        )
    }
}

/// The filters of both APIs: flat members, or `AND` of conditions with `metadata`.
fn fits(memory: &Value, filters: &Value) -> bool {
    filters.as_object().unwrap().iter().all(|(name, value)| match name.as_str() {
        "AND" => value.as_array().unwrap().iter().all(|one| fits(memory, one)),
        "user_id" => memory["user_id"] == *value,
        "metadata" => value
            .as_object()
            .unwrap()
            .iter()
            .all(|(name, value)| memory["metadata"][name] == *value),
        name => memory["metadata"][name] == *value,
    })
}
