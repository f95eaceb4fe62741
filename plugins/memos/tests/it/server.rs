//! MemOS's cloud in memory, with the routes that the provider uses and the answers of MemOS's
//! documentation. It makes one memory of a conversation at once: what was said.

use std::collections::{BTreeMap, BTreeSet};

use memhost_sdk::testing::faults::Stand;
use memhost_sdk::testing::http::{Answer, Sent};
use serde_json::{Value, json};

/// What it holds.
#[derive(Default)]
pub(crate) struct State {
    /// The newest first.
    pub(crate) memories: Vec<Value>,
    pub(crate) messages: BTreeMap<String, Vec<Value>>,
    pub(crate) feedback: Vec<Value>,
    /// The status that every task has; completed if it is empty.
    pub(crate) status: String,
    /// Searching leaves out what was told with a memory.
    pub(crate) tells_less: bool,
    tasks: BTreeSet<String>,
    made: usize,
}

fn said(code: u32, data: Value) -> Answer {
    let mut answer = json!({"code": code, "message": if code == 0 { "ok" } else { "No." }});
    answer["data"] = data;
    Answer::json(200, answer)
}

fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

fn fits(memory: &Value, filter: &Value) -> bool {
    filter.as_object().unwrap().iter().all(|(name, value)| match name.as_str() {
        "and" => value.as_array().unwrap().iter().all(|one| fits(memory, one)),
        "or" => value.as_array().unwrap().iter().any(|one| fits(memory, one)),
        name => memory["info"][name] == *value,
    })
}

impl State {
    fn id(&mut self) -> String {
        self.made += 1;
        format!("mem-0{:04}", self.made)
    }

    fn task(&mut self) -> Answer {
        let task = self.id();
        self.tasks.insert(task.clone());
        said(0, json!({"success": true, "task_id": task, "status": "running"}))
    }

    /// A memory of somebody.
    pub(crate) fn make(&mut self, text: &str, of: &Value, conversation: &Value, info: &Value) {
        let at = format!("2026-11-24 02:{:02}:{:02}", self.made / 60 % 60, self.made % 60);
        let id = self.id();
        self.memories.insert(
            0,
            json!({
                "id": id, "memory_key": "said", "memory_value": text,
                "memory_type": "LongTermMemory", "tags": ["a"], "status": "activated",
                "user_id": of, "conversation_id": conversation, "info": info, "create_time": at,
                "update_time": at,
            }),
        );
    }

    fn of<'a>(&'a self, user: &'a Value) -> impl Iterator<Item = &'a Value> {
        self.memories.iter().filter(move |memory| memory["user_id"] == *user)
    }

    fn search(&self, body: &Value) -> Answer {
        let asked = words(body["query"].as_str().unwrap());
        let like = |memory: &Value| {
            words(memory["memory_value"].as_str().unwrap()).intersection(&asked).count()
        };
        let wanted = |memory: &&Value| {
            like(memory) > 0 && (body["filter"].is_null() || fits(memory, &body["filter"]))
        };
        let mut hits: Vec<Value> = self.of(&body["user_id"]).filter(wanted).cloned().collect();
        hits.truncate(usize::try_from(body["memory_limit_number"].as_u64().unwrap()).unwrap());
        for hit in &mut hits {
            hit["relativity"] = (like(hit) as f64 / asked.len() as f64).into();
            if self.tells_less {
                hit.as_object_mut().unwrap().retain(|name, _| name != "info" && name != "user_id");
            }
        }
        said(
            0,
            json!({
                "memory_detail_list": hits, "preference_detail_list": [], "preference_note": "",
            }),
        )
    }
}

impl Stand for State {
    fn answer(&mut self, sent: &Sent) -> Answer {
        let body = &sent.body;
        let named = |memory: &Value| {
            memory["id"] == body["memory_id"]
                || body["memory_ids"].as_array().is_some_and(|ids| ids.contains(&memory["id"]))
        };
        match (sent.method, sent.path.as_str()) {
            ("POST", "/add/message") => {
                let messages = body["messages"].as_array().unwrap();
                let texts: Vec<_> =
                    messages.iter().map(|message| message["content"].as_str().unwrap()).collect();
                self.make(
                    &texts.join("\n"),
                    &body["user_id"],
                    &body["conversation_id"],
                    &body["info"],
                );
                let conversation = body["conversation_id"].as_str().unwrap().to_owned();
                self.messages.entry(conversation).or_default().extend(messages.iter().cloned());
                self.task()
            }
            ("POST", "/add/feedback") => {
                self.feedback.push(body.clone());
                self.task()
            }
            ("POST", "/get/message") => {
                match self.messages.get(body["conversation_id"].as_str().unwrap()) {
                    Some(all) => said(0, json!({"message_detail_list": all})),
                    None => said(40_001, Value::Null),
                }
            }
            ("POST", "/get/status") => match self.tasks.contains(body["task_id"].as_str().unwrap())
            {
                true if self.status.is_empty() => said(0, json!([{"status": "completed"}])),
                true => said(0, json!({"task_id": body["task_id"], "status": self.status})),
                false => said(40_001, Value::Null),
            },
            ("POST", "/search/memory") => self.search(body),
            ("POST", "/get/memory") => {
                let number = |name: &str| usize::try_from(body[name].as_u64().unwrap()).unwrap();
                let (page, size) = (number("page"), number("size"));
                let all: Vec<_> = self.of(&body["user_id"]).collect();
                let here: Vec<_> = all.iter().skip((page - 1) * size).take(size).collect();
                let pages = all.len().div_ceil(size);
                said(
                    0,
                    json!({
                        "memory_detail_list": here, "preference_detail_list": null,
                        "total": all.len(), "size": size, "current": page, "pages": pages,
                    }),
                )
            }
            ("GET", path) => match self
                .memories
                .iter()
                .find(|memory| path.ends_with(memory["id"].as_str().unwrap()))
            {
                Some(memory) => said(0, memory.clone()),
                None => said(40_001, Value::Null),
            },
            ("POST", "/update/memory") => {
                match self.memories.iter_mut().find(|memory| named(memory)) {
                    Some(memory) => {
                        memory["memory_value"] = body["content"].clone();
                        said(0, json!({"success": true}))
                    }
                    None => said(40_001, Value::Null),
                }
            }
            ("POST", "/delete/memory") => {
                let before = self.memories.len();
                self.memories
                    .retain(|memory| !named(memory) && memory["user_id"] != body["user_id"]);
                said(
                    if self.memories.len() < before { 0 } else { 40_307 },
                    json!({"success": true}),
                )
            }
            _ => panic!("MemOS has no such route: {} {}", sent.method, sent.path),
        }
    }

    fn texts(&self) -> Vec<String> {
        self.memories
            .iter()
            .map(|memory| memory["memory_value"].as_str().unwrap().to_owned())
            .collect()
    }

    fn other_ids(answer: &str) -> String {
        answer.replace("mem-0", "mem-9")
    }
}
