//! The provider `mem0` through the host and the sandbox, in front of a server that answers like
//! mem0's own. What the provider does in detail is in its own tests; `just vendors` has the real
//! server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::support::{Answer, Api};

const CONTROL: &str = "/control/v1/companies/acme";
const RUNTIME: &str = "/runtime/v1/companies/acme";
const KEY: &str = "the-key-of-this-test";

/// What the server holds, and the keys that came with requests.
#[derive(Default)]
pub(super) struct State {
    pub(super) memories: Vec<Value>,
    pub(super) keys: Vec<String>,
    /// How many were ever added.
    added: usize,
    /// It does not answer when it adds.
    is_silent: bool,
}

pub(super) fn serve() -> (u16, Arc<Mutex<State>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let state = Arc::new(Mutex::new(State::default()));
    let shared = Arc::clone(&state);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let state = Arc::clone(&shared);
            std::thread::spawn(move || drop(exchange(stream, &state)));
        }
    });
    (port, state)
}

fn exchange(mut stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut head, mut length, mut line) = (String::new(), 0, String::new());
    while reader.read_line(&mut line)? > 2 {
        let lower = line.to_lowercase();
        if let Some(given) = lower.strip_prefix("content-length:") {
            length = given.trim().parse().unwrap();
        }
        if let Some(key) = lower.strip_prefix("x-api-key:") {
            state.lock().unwrap().keys.push(key.trim().to_owned());
        }
        head.push_str(&line);
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let Some(answer) = state.lock().unwrap().answer(
        method,
        path,
        &serde_json::from_slice(&body).unwrap_or_default(),
    ) else {
        // Until the host closes the connection.
        return std::io::copy(&mut reader, &mut std::io::sink()).map(drop);
    };
    let answer = answer.to_string();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
        answer.len()
    )
}

impl State {
    pub(super) fn answer(&mut self, method: &str, path: &str, body: &Value) -> Option<Value> {
        let id = path.split(['/', '?']).nth(2).unwrap_or_default();
        Some(match (method, path) {
            ("POST", "/memories") => {
                let id = format!("00000000-0000-4000-8000-{:012}", self.added);
                self.added += 1;
                self.memories.push(json!({
                    "id": id, "memory": body["messages"][0]["content"],
                    "user_id": body["user_id"], "metadata": body["metadata"],
                    "created_at": "2026-11-23T13:57:02+00:00", "score": 0.5,
                }));
                if self.is_silent {
                    return None;
                }
                json!({"results": [{"id": id, "event": "ADD"}]})
            }
            ("POST", "/search") => json!({"results": self.memories}),
            ("GET", path) if path.ends_with("/history") => {
                json!([{"old_memory": "as it was", "new_memory": null}])
            }
            ("GET", path) if path.starts_with("/memories?") => json!({"results": self.memories}),
            ("GET", _) => {
                self.memories.iter().find(|memory| memory["id"] == id).cloned().unwrap_or_default()
            }
            ("DELETE", _) => {
                self.memories.retain(|memory| memory["id"] != id);
                json!({"message": "Memory deleted successfully"})
            }
            _ => panic!("{method} {path}"),
        })
    }
}

/// A host whose default binding is mem0 at this port, without grants.
pub(super) async fn host(port: u16) -> (TestHost, Api) {
    let host = TestHost::new(&["mem0"]).await.unwrap();
    let api = Api::new(&host);
    let config = json!({
        "url": format!("http://127.0.0.1:{port}"), "api": "self-hosted", "addMicrocents": 250_000,
    });
    let body = json!({"key": "mem0", "providerKey": "mem0", "default": true, "config": config,
        "limits": {"callTimeoutMs": 2_000}});
    api.post(&format!("{CONTROL}/bindings"), &body).await.fine();
    (host, api)
}

pub(super) async fn grant(api: &Api, port: u16) {
    let origin = format!("http://127.0.0.1:{port}");
    let secret = json!({
        "value": KEY, "origins": [origin], "usedAs": {"kind": "header", "name": "x-api-key"},
    });
    api.put(&format!("{CONTROL}/secrets/MEM0_API_KEY"), &secret).await.fine();
    let grants = json!({"storageBytes": 64 << 20, "secrets": ["MEM0_API_KEY"],
        "http": [{"origin": origin, "privateRanges": ["127.0.0.0/8"]}]});
    api.put(&format!("{CONTROL}/bindings/mem0/grants"), &grants).await.fine();
}

async fn write(api: &Api, text: &str) -> Answer {
    let body = json!({"scope": {"companyId": "acme"}, "records": [{"text": text}]});
    api.post(&format!("{RUNTIME}/records"), &body).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_at_mem0_with_the_key_that_only_the_host_knows() {
    let (port, state) = serve();
    let (_host, api) = host(port).await;
    grant(&api, port).await;
    let handle = write(&api, "The gate is green").await.fine()["records"][0].clone();
    assert_eq!(api.query("acme", "gate").await, ["The gate is green"]);
    assert!(state.lock().unwrap().keys.iter().all(|key| key == KEY));
    assert_eq!(state.lock().unwrap().memories[0]["user_id"], "memhost-acme");
    let operations = api.get(&format!("{CONTROL}/operations?kind=record_upsert")).await;
    assert_eq!(operations["items"][0]["usage"][0]["costCents"], json!(0.25), "{operations}");
    let request = json!({"scope": {"companyId": "acme"}, "handles": [handle]});
    let forgotten = api.post(&format!("{RUNTIME}/forget"), &request).await.fine();
    assert_eq!(forgotten["outcomes"][0]["effect"], "history_kept");
    assert!(state.lock().unwrap().memories.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_was_denied_says_so() {
    let (port, state) = serve();
    let (_host, api) = host(port).await;
    let grants = json!({"storageBytes": 64 << 20});
    api.put(&format!("{CONTROL}/bindings/mem0/grants"), &grants).await.fine();
    let denied = write(&api, "one").await;
    assert!(
        denied.status >= 400 && denied.text.contains("POST /memories was denied"),
        "{denied:?}"
    );
    assert!(state.lock().unwrap().keys.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_there_has_seen_nothing() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (_host, api) = host(port).await;
    grant(&api, port).await;
    let failed = write(&api, "one").await;
    assert!(
        failed.status == 503 && failed.text.contains("POST /memories was not sent"),
        "{failed:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_does_not_come_is_looked_for() {
    let (port, state) = serve();
    let (_host, api) = host(port).await;
    grant(&api, port).await;
    state.lock().unwrap().is_silent = true;
    write(&api, "one").await.fine();
    assert_eq!(state.lock().unwrap().memories.len(), 1, "it was there, and is not written again");
    assert_eq!(api.query("acme", "one").await, ["one"]);
}

/// Without the network a check says what is missing. With it, nothing is removed that somebody else
/// has at the service.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_needs_the_network_and_removes_nothing_of_others() {
    let (port, state) = serve();
    let others =
        json!({"id": "theirs", "memory": "Ada likes tea", "user_id": "ada", "metadata": {}});
    state.lock().unwrap().memories.push(others);
    let home = tempfile::tempdir().unwrap();
    let file = memhost_tests::provider_file("mem0");
    let config = json!({
        "url": format!("http://127.0.0.1:{port}"), "api": "self-hosted", "userId": "ada",
        "withoutKey": true,
    })
    .to_string();
    let check = async |more: &[&str]| {
        let mut arguments = vec![
            "plugin",
            "check",
            file.to_str().unwrap(),
            "--config",
            &config,
            "--rule",
            "UPS-01",
        ];
        arguments.extend(more);
        let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
        super::cli::run(home.path(), &[], &arguments, "").await
    };
    let refused = check(&[]).await;
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(
        refused.err.contains("it asks for the network") && refused.err.contains("--allow-network"),
        "{refused:?}"
    );
    assert_eq!(state.lock().unwrap().added, 0);
    let done = check(&["--allow-network"]).await;
    assert_eq!(done.code, 0, "{done:?}");
    let state = state.lock().unwrap();
    assert!(
        state.added > 0 && state.memories.iter().any(|memory| memory["id"] == "theirs"),
        "{:?}",
        state.memories
    );
}
