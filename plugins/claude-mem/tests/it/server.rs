//! claude-mem's worker in memory, with the routes that the provider uses.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use memhost_sdk::testing::http::{Answer, Sent, serve};
use serde_json::{Value, json};

/// What it holds.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) observations: BTreeMap<u64, Value>,
    pub(crate) sessions: BTreeMap<String, String>,
    pub(crate) uses: Vec<Value>,
    pub(crate) processing: Value,
    pub(crate) version: String,
    last: u64,
}

pub(crate) type Server = Rc<RefCell<State>>;

pub(crate) fn start() -> Server {
    let server = Server::default();
    "13.25.3".clone_into(&mut server.borrow_mut().version);
    let inner = Rc::clone(&server);
    serve(move |sent| Ok(inner.borrow_mut().answer(sent)));
    server
}

fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || char::from(rest.next().unwrap()).to_digit(16).unwrap() as u8;
        bytes.push(if byte == b'%' { digit() * 16 + digit() } else { byte });
    }
    String::from_utf8(bytes).unwrap()
}

impl State {
    /// What was saved, in order.
    pub(crate) fn texts(&self) -> Vec<&str> {
        self.observations.values().filter_map(|seen| seen["narrative"].as_str()).collect()
    }

    pub(crate) fn put(&mut self, project: &str, more: &Value) -> u64 {
        self.last += 1;
        let mut seen = json!({
            "id": self.last, "memory_session_id": "manual", "project": project, "title": null,
            "narrative": null, "text": null, "facts": "[]",
            "created_at": format!("2026-11-23T18:{:02}:{:02}.500Z", self.last / 60, self.last % 60),
            "agent_id": null, "generated_by_model": null, "metadata": null,
        });
        seen.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.observations.insert(self.last, seen);
        self.last
    }

    pub(crate) fn answer(&mut self, sent: &Sent) -> Answer {
        let query: BTreeMap<&str, String> = sent
            .query
            .split('&')
            .filter_map(|part| part.split_once('='))
            .map(|(name, text)| (name, unescaped(text)))
            .collect();
        let number = |name: &str| query[name].parse::<usize>().unwrap();
        let text = |name: &str| sent.body[name].as_str().unwrap().to_owned();
        let parts: Vec<_> = sent.path.strip_prefix("/api/").unwrap().split('/').collect();
        match (sent.method, parts.as_slice()) {
            ("GET", ["health"]) => {
                Answer::json(200, json!({"status": "ok", "version": self.version}))
            }
            ("POST", ["memory", "save"]) => {
                let (narrative, title, project) =
                    (text("text").trim().to_owned(), text("title"), text("project"));
                let is_same = |seen: &&Value| {
                    seen["title"] == *title
                        && seen["narrative"] == *narrative
                        && seen["project"] == *project
                };
                let known = self
                    .observations
                    .values()
                    .find(is_same)
                    .map(|seen| seen["id"].as_u64().unwrap());
                let new = json!({
                    "title": title, "narrative": narrative,
                    "metadata": sent.body["metadata"].to_string(),
                });
                let id = known.unwrap_or_else(|| self.put(&project, &new));
                Answer::json(
                    200,
                    json!({"success": true, "id": id, "title": title, "project": project}),
                )
            }
            (method, ["observation", id]) => {
                let id = id.parse().unwrap();
                let Some(seen) = self.observations.get(&id).cloned() else {
                    return Answer::json(
                        404,
                        json!({"error": format!("observation #{id} not found")}),
                    );
                };
                if method == "GET" {
                    return Answer::json(200, seen);
                }
                self.observations.remove(&id);
                Answer::json(
                    200,
                    json!({"success": true, "id": id.to_string(), "kind": "observation"}),
                )
            }
            ("POST", ["observations", "batch"]) => {
                let has = |seen: &&Value| {
                    sent.body["ids"].as_array().unwrap().contains(&seen["id"])
                        && seen["project"] == sent.body["project"]
                };
                Answer::json(200, self.observations.values().filter(has).cloned().collect())
            }
            ("GET", ["search"]) => {
                let phrase = query["query"].to_lowercase();
                let has = |seen: &&Value| {
                    let text = format!("{} {}", seen["title"], seen["narrative"]).to_lowercase();
                    seen["project"] == *query["project"] && text.contains(&phrase)
                };
                let newest = self.observations.values().rev().filter(has);
                let found: Vec<_> =
                    newest.skip(number("offset")).take(number("limit")).cloned().collect();
                Answer::json(
                    200,
                    json!({
                        "observations": found, "sessions": [], "prompts": [],
                        "totalResults": found.len(),
                    }),
                )
            }
            ("GET", ["timeline"]) => {
                let rows =
                    self.observations.values().filter(|seen| seen["project"] == *query["project"]);
                let rows: String = rows
                    .map(|seen| {
                        format!("| #{} | 6:06 PM | ○ | {} | ~4 |\n", seen["id"], seen["title"])
                    })
                    .collect();
                let text = format!(
                    "# Timeline\n\n| ID | Time | T | Title | Tokens \
                     |\n|----|------|---|---|---|\n{rows}"
                );
                Answer::json(200, json!({"content": [{"type": "text", "text": text}]}))
            }
            ("POST", ["import"]) => {
                let session = &sent.body["sessions"][0];
                let id = session["content_session_id"].as_str().unwrap().to_owned();
                self.sessions
                    .entry(id)
                    .or_insert_with(|| session["project"].as_str().unwrap().to_owned());
                Answer::json(200, json!({"success": true, "stats": {}}))
            }
            ("POST", ["sessions", "observations"]) => {
                assert!(self.sessions.contains_key(&text("contentSessionId")));
                let is_known =
                    self.uses.iter().any(|known| known["tool_use_id"] == sent.body["tool_use_id"]);
                if !is_known {
                    self.uses.push(json!({
                        "tool_use_id": text("tool_use_id"), "agent_id": text("agentId"),
                        "content_session_id": text("contentSessionId"), "observation_id": null,
                        "memory_session_id": format!("observer-{}", text("contentSessionId")),
                        "said": text("tool_response"),
                    }));
                    self.processing =
                        json!({"isProcessing": true, "queueDepth": 1, "parkedSessions": 0});
                }
                Answer::json(200, json!({"status": "queued"}))
            }
            ("GET", ["tool-uses"]) => {
                let of = |known: &&Value| known["content_session_id"] == *query["session"];
                let found: Vec<_> = self.uses.iter().filter(of).cloned().collect();
                Answer::json(200, json!({"count": found.len(), "toolUses": found}))
            }
            ("GET", ["processing-status"]) => Answer::json(200, self.processing.clone()),
            _ => panic!("claude-mem has no such route: {} {}", sent.method, sent.path),
        }
    }

    /// Ends its work, with an observation of what was said in each use unless it is nothing.
    pub(crate) fn observe(&mut self) {
        for number in 0..self.uses.len() {
            let used = self.uses[number].clone();
            if used["said"].as_str().unwrap().contains("nothing")
                || !used["observation_id"].is_null()
            {
                continue;
            }
            let project = self.sessions[used["content_session_id"].as_str().unwrap()].clone();
            let more = json!({
                "title": "It was said", "narrative": used["said"], "facts": "[\"a fact\"]",
                "memory_session_id": used["memory_session_id"], "agent_id": used["agent_id"],
                "generated_by_model": "m",
            });
            self.uses[number]["observation_id"] = json!(self.put(&project, &more));
        }
        self.processing = json!({"isProcessing": false, "queueDepth": 0, "parkedSessions": 0});
    }
}
