//! OpenViking in memory, with the routes that the provider uses.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use memhost_sdk::testing::http::{Answer, Sent, serve};
use serde_json::{Value, json};

/// A file, with its tags.
pub(crate) struct File {
    pub(crate) content: String,
    pub(crate) tags: Vec<String>,
}

/// What it holds. Paths are those below the user.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) files: BTreeMap<String, File>,
    /// Files that are not in the index.
    pub(crate) lost: Vec<String>,
    /// Whether what is found comes without its content.
    pub(crate) tells_less: bool,
    /// Whether a file that is deleted leaves the index only.
    pub(crate) keeps_files: bool,
    pub(crate) sessions: BTreeMap<String, Vec<Value>>,
    pub(crate) tasks: Vec<Value>,
}

pub(crate) type Server = Rc<RefCell<State>>;

/// Serves it in this thread.
pub(crate) fn start() -> Server {
    let server = Server::default();
    let inner = Rc::clone(&server);
    serve(move |sent| Ok(inner.borrow_mut().answer(sent)));
    server
}

#[allow(clippy::needless_pass_by_value, reason = "so that json!({}) can be in place")]
fn fine(result: Value) -> Answer {
    Answer::json(200, json!({"status": "ok", "result": result}))
}

fn failed(status: u16, code: &str) -> Answer {
    let error = json!({"code": code, "message": format!("it is {code}")});
    Answer::json(status, json!({"status": "error", "result": null, "error": error}))
}

fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digits = |rest: &mut std::str::Bytes<'_>| [rest.next().unwrap(), rest.next().unwrap()];
        let hex = |digits: [u8; 2]| {
            u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
        };
        bytes.push(if byte == b'%' { hex(digits(&mut rest)) } else { byte });
    }
    String::from_utf8(bytes).unwrap()
}

fn path(uri: &str) -> String {
    uri.replace("viking://user/u/", "viking://~/").strip_prefix("viking://~/").unwrap().to_owned()
}

impl State {
    pub(crate) fn texts(&self) -> Vec<&str> {
        self.files.values().map(|file| file.content.as_str()).collect()
    }

    pub(crate) fn put(&mut self, path: &str, content: &str) {
        self.files.insert(path.to_owned(), File { content: content.to_owned(), tags: Vec::new() });
    }

    pub(crate) fn answer(&mut self, sent: &Sent) -> Answer {
        let query: BTreeMap<String, String> = sent
            .query
            .split('&')
            .filter_map(|part| part.split_once('='))
            .map(|(name, value)| (name.to_owned(), unescaped(value)))
            .collect();
        let below = |root: &str, path: &str| path == root || path.starts_with(&format!("{root}/"));
        let parts: Vec<_> = sent.path.strip_prefix("/api/v1/").unwrap().split('/').collect();
        match (sent.method, parts.as_slice()) {
            ("GET", ["system", "status"]) => fine(json!({"initialized": true, "user": "u"})),
            ("POST", ["content", "write"]) => {
                let text = |name: &str| sent.body[name].as_str().unwrap().to_owned();
                let tags = sent.body["tags"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|tag| tag.as_str().unwrap().to_lowercase());
                let file =
                    File { content: text("content").trim().to_owned(), tags: tags.collect() };
                self.files.insert(path(&text("uri")), file);
                fine(json!({"uri": text("uri"), "vector_status": "complete"}))
            }
            ("GET", ["content", "read"]) => match self.files.get(&path(&query["uri"])) {
                Some(file) => fine(json!(file.content)),
                None => failed(404, "NOT_FOUND"),
            },
            ("POST", ["search", "find"]) => {
                let asked = &sent.body["target_uri"];
                let asked = asked.as_array().cloned().unwrap_or_else(|| vec![asked.clone()]);
                let roots: Vec<_> = asked.iter().map(|uri| path(uri.as_str().unwrap())).collect();
                let tags: Vec<_> = sent.body["tags"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|tag| tag.as_str().unwrap())
                    .collect();
                let words = sent.body["query"].as_str().unwrap().to_lowercase();
                let fits = |(path, file): &(&String, &File)| {
                    roots.iter().any(|root| below(root, path))
                        && !path.starts_with("sessions/")
                        && !self.lost.contains(path)
                        && tags.iter().all(|tag| file.tags.iter().any(|known| known == tag))
                };
                let score = |file: &File| {
                    let has =
                        words.split(' ').any(|word| file.content.to_lowercase().contains(word));
                    if words.is_empty() {
                        0.0
                    } else if has {
                        0.9
                    } else {
                        0.5
                    }
                };
                let hit = |(path, file): (&String, &File)| {
                    json!({
                        "uri": format!("viking://user/u/{path}"), "level": 2, "score": score(file),
                        "tags": file.tags,
                        "abstract": file.content.chars().take(8).collect::<String>(),
                        "content": file.content,
                    })
                };
                let mut hits: Vec<_> = self.files.iter().filter(fits).map(hit).collect();
                hits.sort_by(|a, b| {
                    b["score"].as_f64().unwrap().total_cmp(&a["score"].as_f64().unwrap())
                });
                hits.truncate(sent.body["limit"].as_u64().unwrap() as usize);
                for hit in hits.iter_mut().filter(|_| self.tells_less) {
                    hit.as_object_mut().unwrap().remove("content");
                }
                fine(json!({"memories": hits, "resources": [], "skills": [], "total": hits.len()}))
            }
            ("GET", ["fs", how]) => self.entries(*how == "tree", &path(&query["uri"]), &query),
            ("DELETE", ["fs"]) => {
                let root = path(&query["uri"]);
                let is_tree = query["recursive"] == "true";
                if self.keeps_files {
                    self.lost.push(root);
                    return fine(json!({"uri": query["uri"]}));
                }
                self.files.retain(|path, _| !(path == &root || is_tree && below(&root, path)));
                if is_tree && root == "sessions" {
                    self.sessions.clear();
                }
                fine(json!({"uri": query["uri"]}))
            }
            ("GET", ["tasks"]) => {
                let of = |task: &&Value| task["resource_id"] == query["resource_id"];
                fine(self.tasks.iter().filter(of).cloned().collect())
            }
            ("POST", ["tasks", id, "cancel"]) => {
                match self.tasks.iter_mut().find(|task| task["task_id"] == *id) {
                    Some(task) if task["status"] == "running" => {
                        task["status"] = json!("cancelling");
                        fine(task.clone())
                    }
                    _ => failed(412, "FAILED_PRECONDITION"),
                }
            }
            (method, ["sessions", rest @ ..]) => self.session(method, rest, &sent.body),
            _ => panic!("OpenViking has no such route: {} {}", sent.method, sent.path),
        }
    }

    fn session(&mut self, method: &str, path: &[&str], body: &Value) -> Answer {
        if path.is_empty() {
            let id = body["session_id"].as_str().unwrap().to_owned();
            if self.sessions.contains_key(&id) {
                return failed(409, "ALREADY_EXISTS");
            }
            self.sessions.insert(id.clone(), Vec::new());
            return fine(json!({"session_id": id}));
        }
        let Some(messages) = self.sessions.get_mut(path[0]) else {
            return failed(404, "NOT_FOUND");
        };
        match (method, &path[1..]) {
            ("GET", []) => fine(json!({"session_id": path[0], "message_count": messages.len()})),
            ("DELETE", []) => {
                self.sessions.remove(path[0]);
                self.files.retain(|file, _| !file.starts_with(&format!("sessions/{}/", path[0])));
                fine(json!({"session_id": path[0]}))
            }
            ("POST", ["messages", "batch"]) => {
                let new = body["messages"].as_array().unwrap();
                assert!(new.len() <= 100);
                messages.extend(new.iter().cloned());
                fine(json!({"session_id": path[0], "message_count": messages.len()}))
            }
            ("POST", ["commit"]) if messages.is_empty() => {
                fine(json!({"status": "skipped", "task_id": null}))
            }
            ("POST", ["commit"]) => {
                let said: Vec<_> = std::mem::take(messages);
                let id = format!("task-{}", self.tasks.len());
                self.tasks.push(
                    json!({"task_id": id, "task_type": "session_commit", "resource_id": path[0],
                    "status": "running", "error": null, "result": null, "said": said}),
                );
                fine(json!({"status": "accepted", "task_id": id}))
            }
            _ => panic!("OpenViking has no such route: {method} sessions/{path:?}"),
        }
    }

    /// Ends the task, as if each message of a user had become a memory.
    pub(crate) fn extract(&mut self, number: usize) {
        let (session, said) =
            (self.tasks[number]["resource_id"].clone(), self.tasks[number]["said"].clone());
        let (mut adds, session) = (Vec::new(), session.as_str().unwrap());
        for (at, message) in
            said.as_array().unwrap().iter().filter(|message| message["role"] == "user").enumerate()
        {
            let path = format!(
                "peers/{}/memories/preferences/user/{session}_{at}.md",
                message["peer_id"].as_str().unwrap()
            );
            self.put(&path, message["content"].as_str().unwrap());
            adds.push(
                json!({"uri": format!("viking://user/u/{path}"), "after": message["content"]}),
            );
        }
        let diff = json!({"operations": {"adds": adds, "updates": [], "deletes": []}});
        let place = format!("sessions/{session}/history/archive_001/memory_diff.json");
        self.put(&place, &diff.to_string());
        self.tasks[number]["status"] = json!("completed");
        self.tasks[number]["result"] = json!({"memory_diff_uri": format!("viking://user/u/{place}"),
            "token_usage": {"llm": {"prompt_tokens": 7, "completion_tokens": 3, "cached_tokens": 0},
                "embedding": {"total_tokens": 5}}});
    }

    /// A page of files, and of the directories that they are in.
    fn entries(&self, is_tree: bool, root: &str, query: &BTreeMap<String, String>) -> Answer {
        let mut found = BTreeMap::new();
        for path in self.files.keys() {
            let Some(rest) = path.strip_prefix(&format!("{root}/")) else { continue };
            let steps: Vec<_> =
                rest.match_indices('/').map(|(at, _)| &rest[..at]).chain([rest]).collect();
            for step in steps.iter().take(if is_tree { steps.len() } else { 1 }) {
                found.insert((*step).to_owned(), *step != rest);
            }
        }
        if found.is_empty() {
            return failed(404, "NOT_FOUND");
        }
        let number = |name: &str| query[name].parse::<usize>().unwrap();
        let (offset, limit) = (number("offset"), number("limit"));
        let entry = |(path, is_dir): (&String, &bool)| {
            json!({
                "uri": format!("viking://user/u/{root}/{path}"), "isDir": is_dir,
                "modTime": "2026-11-23T17:34:04Z",
            })
        };
        let page: Vec<_> = found.iter().skip(offset).take(limit).map(entry).collect();
        Answer::json(
            200,
            json!({"status": "ok", "result": page, "has_more": offset + limit < found.len()}),
        )
    }
}
