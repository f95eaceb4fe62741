//! supermemory in memory, with the routes that the provider uses: a smaller copy of the stand-in
//! that supermemory's own SDK has checked (`tests/vendors/supermemory`).

use std::collections::BTreeSet;

use memhost_sdk::testing::faults::Stand;
use memhost_sdk::testing::http::{Answer, Sent};
use serde_json::{Value, json};

/// What it holds.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) documents: Vec<Value>,
    /// The newest first, also what is forgotten and earlier versions.
    pub(crate) memories: Vec<Value>,
    made: usize,
}

fn missing(what: &str) -> Answer {
    Answer::json(404, json!({"error": format!("{what} not found")}))
}

fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

fn fits(memory: &Value, filters: &Value) -> bool {
    let either = |parts: &Value| parts.as_array().cloned();
    match (either(&filters["AND"]), either(&filters["OR"])) {
        (Some(all), _) => all.iter().all(|part| fits(memory, part)),
        (_, Some(any)) => any.iter().any(|part| fits(memory, part)),
        _ => {
            filters.is_null()
                || memory["metadata"][filters["key"].as_str().unwrap()] == filters["value"]
        }
    }
}

impl State {
    fn there(&self) -> impl Iterator<Item = &Value> {
        self.memories
            .iter()
            .filter(|memory| memory["isLatest"] == true && memory["isForgotten"] == false)
    }

    fn id(&mut self) -> String {
        self.made += 1;
        format!("id{:06}", self.made)
    }

    fn make(&mut self, text: &Value, of: &Value, document: &Value, more: &Value) -> Value {
        let at = format!("2026-11-23T18:{:02}:{:02}.500Z", self.made / 60 % 60, self.made % 60);
        let mut memory = json!({
            "id": self.id(), "memory": text, "isLatest": true, "isForgotten": false,
            "createdAt": at, "updatedAt": at, "rootMemoryId": null, "forgetAfter": null,
            "metadata": of, "documentIds": [document], "history": [],
        });
        memory.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.memories.insert(0, memory.clone());
        memory
    }

    /// Extracts each sentence of a document.
    pub(crate) fn extract(&mut self) {
        for at in 0..self.documents.len() {
            let document = self.documents[at].clone();
            if document["status"] == "queued" {
                self.documents[at]["status"] = "done".into();
                for sentence in document["content"].as_str().unwrap().split_inclusive(". ") {
                    self.make(&sentence.trim().into(), &json!({}), &document["id"], &json!({}));
                }
            }
        }
    }
}

impl Stand for State {
    fn answer(&mut self, sent: &Sent) -> Answer {
        let body = &sent.body;
        let page = |key: &str, items: Vec<Value>| {
            let (limit, page) = (
                body["limit"].as_u64().unwrap() as usize,
                body["page"].as_u64().unwrap_or(1) as usize,
            );
            let pagination = json!({
                "currentPage": page, "totalItems": items.len(),
                "totalPages": items.len().div_ceil(limit).max(1),
            });
            let items: Vec<_> = items.into_iter().skip((page - 1) * limit).take(limit).collect();
            Answer::json(200, json!({key: items, "pagination": pagination}))
        };
        let named = |memory: &&mut Value| {
            memory["id"] == body["id"]
                && memory["isLatest"] == true
                && memory["isForgotten"] == false
        };
        match (sent.method, sent.path.as_str()) {
            ("POST", "/v3/documents") => {
                let same = self
                    .documents
                    .iter()
                    .find(|document| document["customId"] == body["customId"])
                    .cloned();
                let document = same.unwrap_or_else(|| {
                    let id = self.id();
                    let new = json!({
                        "id": id, "status": "queued", "customId": body["customId"],
                        "content": body["content"],
                    });
                    self.documents.push(new.clone());
                    new
                });
                Answer::json(200, document)
            }
            ("POST", "/v3/documents/list") => page("memories", self.documents.clone()),
            ("DELETE", "/v3/documents/bulk") => {
                self.documents.clear();
                self.memories.clear();
                Answer::json(200, json!({"success": true}))
            }
            ("GET", path) => {
                match self
                    .documents
                    .iter()
                    .find(|document| path.ends_with(document["id"].as_str().unwrap()))
                {
                    Some(document) => Answer::json(200, document.clone()),
                    None => missing("Document"),
                }
            }
            ("POST", "/v4/memories") => {
                let document = self.id().into();
                for new in body["memories"].as_array().unwrap() {
                    self.make(
                        &new["content"],
                        &new["metadata"],
                        &document,
                        &json!({"forgetAfter": new["forgetAfter"]}),
                    );
                }
                Answer::json(201, json!({"documentId": document}))
            }
            ("POST", "/v4/memories/list") => page(
                "memoryEntries",
                self.there().filter(|memory| fits(memory, &body["filters"])).cloned().collect(),
            ),
            ("PATCH", "/v4/memories") => {
                let Some(old) = self.memories.iter_mut().find(named) else {
                    return missing("Memory");
                };
                old["isLatest"] = false.into();
                let old = old.clone();
                let root =
                    if old["rootMemoryId"].is_null() { &old["id"] } else { &old["rootMemoryId"] };
                let more = json!({
                    "rootMemoryId": root, "forgetAfter": body["forgetAfter"],
                    "history": [{"id": old["id"]}],
                });
                let new = self.make(
                    &body["newContent"],
                    &body["metadata"],
                    &old["documentIds"][0],
                    &more,
                );
                Answer::json(200, new)
            }
            ("DELETE", "/v4/memories") => match self.memories.iter_mut().find(named) {
                Some(memory) => {
                    memory["isForgotten"] = true.into();
                    Answer::json(200, json!({"id": body["id"], "forgotten": true}))
                }
                None => missing("Memory"),
            },
            ("POST", "/v4/search") => {
                let asked = words(body["q"].as_str().unwrap());
                let like = |memory: &Value| {
                    words(memory["memory"].as_str().unwrap()).intersection(&asked).count()
                };
                let mut hits: Vec<_> = self
                    .there()
                    .filter(|memory| like(memory) > 0 && fits(memory, &body["filters"]))
                    .cloned()
                    .collect();
                hits.sort_by_key(|memory| std::cmp::Reverse(like(memory)));
                hits.truncate(body["limit"].as_u64().unwrap() as usize);
                for hit in &mut hits {
                    hit["similarity"] = (like(hit) as f64 / asked.len() as f64).into();
                }
                Answer::json(200, json!({"results": hits}))
            }
            _ => panic!("supermemory has no such route: {} {}", sent.method, sent.path),
        }
    }

    fn texts(&self) -> Vec<String> {
        self.there().map(|memory| memory["memory"].as_str().unwrap().to_owned()).collect()
    }

    fn other_ids(answer: &str) -> String {
        answer.replace("id0", "id9")
    }
}
