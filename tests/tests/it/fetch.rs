//! The example `fetch.js` in front of its service: `fetch` of JavaScript through the sandbox, in a
//! component of the world `memory-provider-http`.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};

use axum::extract::Query;
use memhost_conformance::{CheckOptions, Network};
use memhost_sdk::testing::http::{Answer, Sent};
use memhost_tests::{TestHost, eventually, example_file, needed};
use serde_json::{Value, json};

use super::examples::keeps_every_rule;
use super::services::serve;
use super::support::Api;

const EXAMPLE: &str = "javascript-fetch";
const KEY: &str = "the-key-of-this-test";
const CONTROL: &str = "/control/v1/companies/acme";
const RUNTIME: &str = "/runtime/v1/companies/acme";
const PARTITIONS: [&str; 3] = ["agent", "subject", "namespace"];

/// One test compiles the component, and the other one loads it.
static COMPILED: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// The service.
#[derive(Default)]
struct Notes {
    notes: BTreeMap<String, Value>,
    /// The keys that came with requests.
    keys: Vec<String>,
    /// While the other end is there, it says nothing.
    silent: Option<Receiver<()>>,
}

/// The members of a form. A part of a path is escaped like a value of it.
fn form(text: &str) -> BTreeMap<String, String> {
    let uri: http::Uri = format!("/?{text}").parse().unwrap();
    let Query(members) = Query::try_from_uri(&uri).unwrap();
    members
}

impl Notes {
    fn answer(&mut self, sent: &Sent) -> Answer {
        self.keys.push(sent.header("authorization").unwrap_or_default().to_owned());
        if let Some(silent) = &self.silent {
            let _ = silent.recv();
        }
        let query = form(&sent.query);
        let is_there = |note: &Value| {
            PARTITIONS.iter().all(|name| match (note[*name].as_str(), query.get(*name)) {
                (Some(own), Some(asked)) => own == asked,
                _ => true,
            })
        };
        let limit: usize = query.get("limit").map_or(0, |limit| limit.parse().unwrap());
        // After `/companies/COMPANY/`.
        let place: Vec<&str> = sent.path.split('/').skip(3).collect();
        match place.as_slice() {
            ["search"] => {
                let words: Vec<String> =
                    query["q"].to_lowercase().split_whitespace().map(str::to_owned).collect();
                let share = |note: &Value| {
                    let text = note["text"].as_str().unwrap().to_lowercase();
                    let found = words.iter().filter(|word| text.contains(word.as_str())).count();
                    found as f64 / words.len().max(1) as f64
                };
                let seen = self.notes.values().filter(|note| is_there(note));
                let mut found: Vec<(f64, &Value)> = seen.map(|note| (share(note), note)).collect();
                found.retain(|(score, _)| words.is_empty() || *score > 0.0);
                let changed = |note: &Value| note["changed"].as_str().unwrap().to_owned();
                found.sort_by(|a, b| {
                    b.0.total_cmp(&a.0).then_with(|| changed(b.1).cmp(&changed(a.1)))
                });
                let scored = |(score, note): &(f64, &Value)| {
                    let mut note = (*note).clone();
                    note["score"] = json!(score);
                    note
                };
                let notes: Vec<Value> = found.iter().take(limit).map(scored).collect();
                Answer::json(200, json!({"notes": notes}))
            }
            ["notes"] => {
                let after = query.get("after").map_or("", String::as_str);
                let seen =
                    self.notes.iter().filter(|(id, note)| id.as_str() > after && is_there(note));
                let mut notes: Vec<&Value> = seen.map(|(_, note)| note).collect();
                let has_more = notes.len() > limit;
                notes.truncate(limit);
                Answer::json(200, json!({"notes": notes, "more": has_more}))
            }
            ["notes", id] => {
                let id = form(&format!("id={id}")).remove("id").unwrap();
                let old = self.notes.get(&id).cloned();
                let is_hidden = old.as_ref().is_some_and(|note| !is_there(note));
                match (sent.method, old) {
                    ("PUT", _) if is_hidden => Answer::json(409, json!({})),
                    ("PUT", old) => {
                        let mut note = sent.body.clone();
                        let number = self.keys.len();
                        let now =
                            format!("2026-11-24T04:{:02}:{:02}Z", number / 60 % 60, number % 60);
                        note["id"] = json!(id);
                        note["changed"] = json!(now);
                        if note["created"].is_null() {
                            note["created"] =
                                old.map_or_else(|| json!(now), |old| old["created"].clone());
                        }
                        for name in PARTITIONS {
                            if let Some(value) = query.get(name) {
                                note[name] = json!(value);
                            }
                        }
                        self.notes.insert(id, note.clone());
                        Answer::json(200, note)
                    }
                    (_, Some(note)) if !is_hidden => {
                        if sent.method == "DELETE" {
                            self.notes.remove(&id);
                        }
                        Answer::json(200, note)
                    }
                    _ => Answer::json(404, json!({})),
                }
            }
            _ => panic!("{} {}", sent.method, sent.path),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fetch_keeps_every_rule() {
    let _one = COMPILED.lock().await;
    let port = serve(&Arc::new(Mutex::new(Notes::default())), Notes::answer);
    let config = json!({"url": format!("http://127.0.0.1:{port}")});
    let used = "header:authorization:Bearer".parse().unwrap();
    let network = Network {
        secrets: vec![("NOTES_API_KEY".to_owned(), KEY.to_owned(), used)],
        private_ranges: vec!["127.0.0.0/8".parse().unwrap()],
    };
    let config = config.as_object().unwrap().clone();
    keeps_every_rule(
        EXAMPLE,
        &CheckOptions { config, network: Some(network), ..CheckOptions::default() },
    )
    .await;
}

/// What the log of the last operation of a kind says.
async fn log(api: &Api, kind: &str) -> String {
    let operations = api.get(&format!("{CONTROL}/operations?kind={kind}")).await;
    let id = operations["items"][0]["id"].as_str().unwrap();
    api.get(&format!("{CONTROL}/operations/{id}")).await["log"].to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fetch_reaches_what_is_granted_and_gets_no_secret() {
    let Some(file) = needed(example_file(EXAMPLE)) else { return };
    let service = Arc::new(Mutex::new(Notes::default()));
    let port = serve(&service, Notes::answer);
    let origin = format!("http://127.0.0.1:{port}");
    let host = TestHost::new(&[]).await.unwrap();
    std::fs::copy(file, host.directory().join("plugins/fetch.wasm")).unwrap();
    let one = COMPILED.lock().await;
    host.service().control().scan_plugins().await;
    eventually("it is admitted", async || {
        let admitted = host.service().control().plugins().admitted;
        let mut imports = admitted.iter().flat_map(|plugin| &plugin.inspection.imports);
        imports.any(|import| import.starts_with("wasi:http/outgoing-handler@0.2."))
    })
    .await;
    drop(one);
    let api = Api::new(&host);
    let body = json!({"key": "notes", "providerKey": "notes-javascript-fetch", "default": true,
        "config": {"url": origin}});
    api.post(&format!("{CONTROL}/bindings"), &body).await.fine();

    // The request is made, and leaves nothing but a line in the log.
    let refused = api.capture("acme", "The gate is red").await;
    assert_eq!(refused.problem(), (503, "unavailable"), "{refused:?}");
    assert!(
        refused.text.contains("NetworkError") && !refused.text.contains("not granted"),
        "{refused:?}"
    );
    assert!(log(&api, "capture").await.contains("is not granted"));
    assert!(service.lock().unwrap().keys.is_empty());

    let used = json!({"kind": "header", "name": "authorization", "prefix": "Bearer"});
    let secret = json!({"value": KEY, "origins": [origin], "usedAs": used});
    api.put(&format!("{CONTROL}/secrets/NOTES_API_KEY"), &secret).await.fine();
    let http = json!([{
        "origin": origin, "methods": ["GET", "PUT", "DELETE"], "privateRanges": ["127.0.0.0/8"],
    }]);
    let grants = json!({"secrets": ["NOTES_API_KEY"], "http": http});
    api.put(&format!("{CONTROL}/bindings/notes/grants"), &grants).await.fine();
    // More than it takes at once.
    let mut records: Vec<Value> =
        (0..20).map(|n| json!({"text": format!("Gate {n} is green")})).collect();
    records.push(json!({"text": format!("The harbour opens with {KEY}")}));
    let body = json!({"scope": {"companyId": "acme"}, "records": records});
    let written = api.post(&format!("{RUNTIME}/records"), &body).await.fine();
    let handles = written["records"].as_array().unwrap().clone();
    assert_eq!((handles.len(), service.lock().unwrap().notes.len()), (21, 21), "{written}");
    assert!(api.query("acme", "gate 7 green").await.contains(&"Gate 7 is green".to_owned()));
    assert_eq!(
        api.query("acme", "harbour").await,
        ["The harbour opens with [secret NOTES_API_KEY]"]
    );
    assert!(service.lock().unwrap().keys.iter().all(|key| *key == format!("Bearer {KEY}")));
    let request = json!({"scope": {"companyId": "acme"}, "handles": handles[..20]});
    let forgotten = api.post(&format!("{RUNTIME}/forget"), &request).await.fine();
    assert!(
        forgotten["outcomes"].as_array().unwrap().iter().all(|one| one["effect"] == "hard"),
        "{forgotten}"
    );
    assert_eq!(service.lock().unwrap().notes.len(), 1);

    // It gives up in time to say so, also where many requests wait. A machine may be too busy for
    // that: then the host ends the call, and a longer one leaves more time.
    let (_waits, silent) = mpsc::channel();
    service.lock().unwrap().silent = Some(silent);
    let scope = json!({"companyId": "acme"});
    let records: Vec<Value> = (0..5).map(|n| json!({"text": format!("Gate {n}")})).collect();
    for (route, body) in [
        ("query", json!({"scope": scope, "query": "gate"})),
        ("records", json!({"scope": scope, "records": records})),
    ] {
        for seconds in [2, 20, 200] {
            let limits = json!({"limits": {"callTimeoutMs": seconds * 1_000}});
            api.patch(&format!("{CONTROL}/bindings/notes"), &limits).await.fine();
            let slow = api.post(&format!("{RUNTIME}/{route}"), &body).await;
            if slow.problem() != (504, "timed_out") {
                assert_eq!(slow.problem(), (503, "unavailable"), "{slow:?}");
                assert!(slow.text.contains("TimeoutError"), "{slow:?}");
                break;
            }
            assert!(seconds < 200, "{slow:?}");
        }
    }
}
