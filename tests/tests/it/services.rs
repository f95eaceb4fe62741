//! The providers `agentcore`, `claude-mem`, `memos`, `openviking` and `supermemory` through the
//! host and the sandbox, in front of the services of their own tests behind a port. What they do in
//! detail is in those tests; `just vendors` has the real servers and the stand-ins.

#[allow(dead_code)]
#[path = "../../../plugins/agentcore/tests/it/server.rs"]
mod agentcore;
#[allow(dead_code)]
#[path = "../../../plugins/claude-mem/tests/it/server.rs"]
mod claude_mem;
#[allow(dead_code)]
#[path = "../../../plugins/memos/tests/it/server.rs"]
mod memos;
#[allow(dead_code)]
#[path = "../../../plugins/openviking/tests/it/server.rs"]
mod openviking;
#[allow(dead_code)]
#[path = "../../../plugins/supermemory/tests/it/server.rs"]
mod supermemory;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use memhost_sdk::testing::faults::Stand;
use memhost_sdk::testing::http::{Answer, Sent};
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::support::Api;

const CONTROL: &str = "/control/v1/companies/acme";
const RUNTIME: &str = "/runtime/v1/companies/acme";
const KEY: &str = "the-key-of-this-test";

/// Serves a service on a port, which is answered.
pub(super) fn serve<S: Send + 'static>(
    service: &Arc<Mutex<S>>,
    answer: fn(&mut S, &Sent) -> Answer,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let service = Arc::clone(service);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let service = Arc::clone(&service);
            std::thread::spawn(move || {
                exchange(stream, |sent| answer(&mut service.lock().unwrap(), sent)).ok()
            });
        }
    });
    port
}

fn exchange(mut stream: TcpStream, answer: impl Fn(&Sent) -> Answer) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut lines, mut line) = (Vec::new(), String::new());
    while reader.read_line(&mut line)? > 2 {
        lines.push(line.trim_end().to_owned());
        line.clear();
    }
    let header = |line: &String| {
        line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()))
    };
    let headers: Vec<_> = lines.iter().skip(1).filter_map(header).collect();
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut words = lines[0].split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let method = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        .into_iter()
        .find(|known| *known == method)
        .unwrap();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let sent = Sent {
        method,
        origin: String::new(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
        timeout: Duration::ZERO,
    };
    let Answer { status, body, .. } = answer(&sent);
    write!(
        stream,
        "HTTP/1.1 {status} OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(&body)
}

/// A host whose default binding is this provider, in front of this port.
async fn host(provider: &str, port: u16, secret: Option<&str>) -> (TestHost, Api) {
    let used = json!({"kind": "header", "name": "x-api-key"});
    host_with(provider, port, json!({}), secret.map(|secret| (secret, KEY, used))).await
}

/// The same with more configuration, and with a secret that has a name, a value and a use.
async fn host_with(
    provider: &str,
    port: u16,
    mut config: Value,
    secret: Option<(&str, &str, Value)>,
) -> (TestHost, Api) {
    let host = TestHost::new(&[provider]).await.unwrap();
    let api = Api::new(&host);
    let origin = format!("http://127.0.0.1:{port}");
    config["url"] = origin.as_str().into();
    let body = json!({"key": "vendor", "providerKey": provider, "default": true, "config": config});
    api.post(&format!("{CONTROL}/bindings"), &body).await.fine();
    let mut named = Vec::new();
    if let Some((secret, value, used)) = secret {
        let value = json!({"value": value, "origins": [origin], "usedAs": used});
        api.put(&format!("{CONTROL}/secrets/{secret}"), &value).await.fine();
        named.push(secret);
    }
    let grants = json!({"storageBytes": 64 << 20, "secrets": named,
        "http": [{"origin": origin, "privateRanges": ["127.0.0.0/8"]}]});
    api.put(&format!("{CONTROL}/bindings/vendor/grants"), &grants).await.fine();
    (host, api)
}

async fn write(api: &Api, agent: &str, id: &str, text: &str) -> Value {
    let body = json!({
        "scope": {"companyId": "acme", "agentId": agent}, "records": [{"id": id, "text": text}],
        "visibility": "agent",
    });
    api.post(&format!("{RUNTIME}/records"), &body).await.fine()["records"][0].clone()
}

async fn seen(api: &Api, text: &str) -> Vec<String> {
    let mut texts = api.query("acme", text).await;
    texts.sort();
    texts
}

async fn ended(api: &Api) -> Value {
    let is_over = |found: &Value| {
        let jobs = found["items"].as_array().unwrap();
        jobs.len() == 1 && !["queued", "running"].contains(&jobs[0]["status"].as_str().unwrap())
    };
    api.until(&format!("{CONTROL}/jobs"), is_over).await["items"][0].clone()
}

/// Two agents write, correct and forget, across a restart; a record has one text, and only its
/// agent sees it.
async fn two_agents_keep_their_records(
    mut host: TestHost,
    api: Api,
    effect: &str,
    left: impl Fn() -> Vec<String>,
) {
    let (ada, bob) = (api.agent("ada").await, api.agent("bob").await);
    let handle = write(&api, "ada", "gate", "The gate is red").await;
    write(&api, "bob", "door", "The door is shut").await;
    write(&api, "ada", "gate", "The gate is green").await;
    assert_eq!(left(), ["The door is shut", "The gate is green"]);
    let tokens = [ada.token().to_owned(), bob.token().to_owned()];
    drop((api, ada, bob));
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    let [ada, bob] = tokens.map(|token| api.with(&token));
    assert_eq!(seen(&ada, "gate green").await, ["The gate is green"]);
    assert_eq!(seen(&bob, "door shut").await, ["The door is shut"]);
    let replacement = json!({"text": "The gate is blue"});
    let body =
        json!({"scope": {"companyId": "acme"}, "handle": handle, "patch": {"record": replacement}});
    api.post(&format!("{RUNTIME}/correct"), &body).await.fine();
    assert_eq!(seen(&ada, "gate blue").await, ["The gate is blue"]);
    let forget = json!({"scope": {"companyId": "acme"}, "handles": [handle]});
    let forgotten = api.post(&format!("{RUNTIME}/forget"), &forget).await.fine();
    assert_eq!(forgotten["outcomes"][0]["effect"], effect, "{forgotten}");
    assert_eq!(left(), ["The door is shut"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_at_openviking() {
    let service = Arc::new(Mutex::new(openviking::State::default()));
    let port = serve(&service, |state, sent| {
        assert_eq!(sent.header("x-api-key"), Some(KEY));
        state.answer(sent)
    });
    let (host, api) = host("openviking", port, Some("OPENVIKING_API_KEY")).await;
    two_agents_keep_their_records(host, api, "hard", move || {
        service.lock().unwrap().texts().into_iter().map(str::to_owned).collect()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_at_claude_mem() {
    let service = Arc::new(Mutex::new(claude_mem::State::default()));
    let port = serve(&service, claude_mem::State::answer);
    let (host, api) = host("claude-mem", port, None).await;
    two_agents_keep_their_records(host, api, "hard", move || {
        let mut texts: Vec<_> =
            service.lock().unwrap().texts().into_iter().map(str::to_owned).collect();
        texts.sort();
        texts
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_openviking_extracts_is_a_job_with_its_tokens_and_a_company_is_forgotten() {
    let service = Arc::new(Mutex::new(openviking::State::default()));
    let port = serve(&service, openviking::State::answer);
    let (_host, api) = host("openviking", port, Some("OPENVIKING_API_KEY")).await;
    api.capture("acme", "Ada likes tea").await.fine();
    service.lock().unwrap().extract(0);
    let job = ended(&api).await;
    assert_eq!((&job["status"], &job["recordCount"]), (&json!("succeeded"), &json!(1)), "{job}");
    assert_eq!(seen(&api, "tea").await, ["Ada likes tea"]);
    let operations = api.get(&format!("{CONTROL}/operations?kind=extraction")).await;
    assert!(operations.to_string().contains("\"inputTokens\":7"), "{operations}");
    api.post(&format!("{CONTROL}/erase"), &json!({"confirm": "acme"})).await.fine();
    assert!(
        service.lock().unwrap().files.is_empty() && service.lock().unwrap().sessions.is_empty()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_claude_mem_observes_is_a_job_and_a_company_is_forgotten() {
    let service = Arc::new(Mutex::new(claude_mem::State::default()));
    let port = serve(&service, claude_mem::State::answer);
    let (_host, api) = host("claude-mem", port, None).await;
    api.capture("acme", "Ada likes tea").await.fine();
    service.lock().unwrap().observe();
    let job = ended(&api).await;
    assert_eq!((&job["status"], &job["recordCount"]), (&json!("succeeded"), &json!(1)), "{job}");
    assert_eq!(seen(&api, "tea").await, ["It was said\n\nAda likes tea\n\n- a fact"]);
    // The list of tool uses has what was said.
    let told = api.post(&format!("{CONTROL}/erase"), &json!({"confirm": "acme"})).await;
    assert!(
        told.status == 409 && told.text.contains("a history elsewhere still has it"),
        "{}",
        told.text
    );
    assert!(service.lock().unwrap().observations.is_empty());
}

/// The texts of a service, sorted.
fn sorted(service: &Mutex<impl Stand>) -> Vec<String> {
    let mut texts = service.lock().unwrap().texts();
    texts.sort();
    texts
}

async fn supermemory(service: &Arc<Mutex<supermemory::State>>) -> (TestHost, Api) {
    let port = serve(service, |state, sent| {
        assert_eq!(sent.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        state.answer(sent)
    });
    let used = json!({"kind": "header", "name": "authorization", "prefix": "Bearer"});
    host_with("supermemory", port, json!({}), Some(("SUPERMEMORY_API_KEY", KEY, used))).await
}

async fn agentcore(service: &Arc<Mutex<agentcore::State>>) -> (TestHost, Api) {
    let port = serve(service, |state, sent| {
        let signature = sent.header("authorization").unwrap();
        assert!(
            signature.starts_with("AWS4-HMAC-SHA256 Credential=AKIDTEST/")
                && !signature.contains(KEY),
            "{signature}"
        );
        state.answer(sent)
    });
    let used = json!({"kind": "sigv4", "service": "bedrock-agentcore", "region": "eu-central-1"});
    let config = json!({"memoryId": "memhost-AbCdEf0123"});
    let key = format!("AKIDTEST:{KEY}");
    host_with("agentcore", port, config, Some(("AWS_KEY", &key, used))).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_at_supermemory() {
    let service = Arc::new(Mutex::new(supermemory::State::default()));
    let (host, api) = supermemory(&service).await;
    two_agents_keep_their_records(host, api, "soft", move || sorted(&service)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_at_agentcore() {
    let service = Arc::new(Mutex::new(agentcore::State::default()));
    let (host, api) = agentcore(&service).await;
    two_agents_keep_their_records(host, api, "hard", move || sorted(&service)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_supermemory_extracts_is_a_job_and_a_company_is_forgotten() {
    let service = Arc::new(Mutex::new(supermemory::State::default()));
    let (_host, api) = supermemory(&service).await;
    api.capture("acme", "Ada likes tea").await.fine();
    service.lock().unwrap().extract();
    let job = ended(&api).await;
    assert_eq!((&job["status"], &job["recordCount"]), (&json!("succeeded"), &json!(1)), "{job}");
    assert_eq!(seen(&api, "tea").await, ["Ada likes tea"]);
    // It says nothing of memories that were hidden before.
    let told = api.post(&format!("{CONTROL}/erase"), &json!({"confirm": "acme"})).await;
    assert_eq!(told.status, 409, "{}", told.text);
    assert!(
        service.lock().unwrap().memories.is_empty() && service.lock().unwrap().documents.is_empty()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_agentcore_extracts_is_a_job_and_a_company_is_forgotten() {
    let service = Arc::new(Mutex::new(agentcore::State::default()));
    let (_host, api) = agentcore(&service).await;
    api.capture("acme", "Ada likes tea").await.fine();
    service.lock().unwrap().extract();
    let job = ended(&api).await;
    assert_eq!((&job["status"], &job["recordCount"]), (&json!("succeeded"), &json!(1)), "{job}");
    assert_eq!(seen(&api, "tea").await, ["Ada likes tea"]);
    api.post(&format!("{CONTROL}/erase"), &json!({"confirm": "acme"})).await.fine();
    assert!(
        service.lock().unwrap().records.is_empty() && service.lock().unwrap().events.is_empty()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_memos_makes_is_a_job_with_feedback_and_a_company_is_forgotten() {
    let service = Arc::new(Mutex::new(memos::State::default()));
    let port = serve(&service, |state, sent| {
        assert_eq!(sent.header("authorization"), Some(format!("Token {KEY}").as_str()));
        state.answer(sent)
    });
    let used = json!({"kind": "header", "name": "authorization", "prefix": "Token"});
    let (_host, api) =
        host_with("memos", port, json!({}), Some(("MEMOS_API_KEY", KEY, used))).await;
    api.capture("acme", "Ada likes tea").await.fine();
    let job = ended(&api).await;
    assert_eq!((&job["status"], &job["recordCount"]), (&json!("succeeded"), &json!(1)), "{job}");
    assert_eq!(seen(&api, "tea").await, ["Ada likes tea"]);
    let query = json!({"scope": {"companyId": "acme"}, "query": "tea", "topK": 1});
    let handle =
        api.post(&format!("{RUNTIME}/query"), &query).await.fine()["snippets"][0]["handle"].clone();
    for patch in
        [json!({"record": {"text": "Ada likes ships"}}), json!({"instruction": "Also boats."})]
    {
        let body = json!({"scope": {"companyId": "acme"}, "handle": handle, "patch": patch});
        api.post(&format!("{RUNTIME}/correct"), &body).await.fine();
    }
    assert_eq!(sorted(&service), ["Ada likes ships"]);
    assert_eq!(service.lock().unwrap().feedback.len(), 1);
    // A text as it is cannot be kept.
    let body = json!({"scope": {"companyId": "acme"}, "records": [{"text": "as it is"}]});
    let refused = api.post(&format!("{RUNTIME}/records"), &body).await;
    assert!(refused.status >= 400 && refused.text.contains("capture the text"), "{}", refused.text);
    // What was said stays in its conversation.
    let told = api.post(&format!("{CONTROL}/erase"), &json!({"confirm": "acme"})).await;
    assert!(
        told.status == 409 && told.text.contains("a history elsewhere still has it"),
        "{}",
        told.text
    );
    assert!(service.lock().unwrap().memories.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_that_cannot_work_is_refused_where_it_is_wrong() {
    let host = TestHost::new(&["agentcore", "claude-mem", "memos", "openviking", "supermemory"])
        .await
        .unwrap();
    let api = Api::new(&host);
    let seven: Vec<_> = (0..7).map(|n| n.to_string()).collect();
    let made = async |provider: &str, key: String, member: &str, value: &Value| {
        let mut config = json!({"url": "http://127.0.0.1:1"});
        if provider == "agentcore" {
            config["memoryId"] = "memhost-AbCdEf0123".into();
        }
        config[member] = value.clone();
        let body = json!({"key": key, "providerKey": provider, "config": config});
        api.post(&format!("{CONTROL}/bindings"), &body).await
    };
    for (number, (provider, member, right, wrong)) in [
        ("agentcore", "memoryId", json!("memhost-AbCdEf0124"), json!("short")),
        ("agentcore", "indexed", json!(["a_b"]), json!(["a b"])),
        ("agentcore", "indexed", json!(seven[..6]), json!(seven)),
        ("agentcore", "settleSeconds", json!(3_600), json!(3_601)),
        ("agentcore", "extract", json!("never"), json!("some")),
        ("agentcore", "addMicrocents", json!(0), json!(-1)),
        ("claude-mem", "project", json!("a b"), json!(" a")),
        ("claude-mem", "project", json!("a"), json!("a,b")),
        ("claude-mem", "semantic", json!(true), json!("yes")),
        ("memos", "userId", json!("a"), json!("a b")),
        ("openviking", "threshold", json!(1), json!(1.5)),
        ("openviking", "infer", json!("always"), json!("some")),
        ("supermemory", "containerTag", json!("a-b"), json!("a.b")),
        ("supermemory", "threshold", json!(0), json!(-0.1)),
        ("supermemory", "url", json!("https://example.com"), json!(1)),
    ]
    .into_iter()
    .enumerate()
    {
        made(provider, format!("right-{number}"), member, &right).await.fine();
        let told = made(provider, format!("wrong-{number}"), member, &wrong).await;
        assert!(
            told.status == 422 && told.text.contains(member),
            "{provider}: {} {}",
            told.status,
            told.text
        );
        let told = made(provider, format!("wrong-{number}"), "misspelt", &wrong).await;
        assert!(
            told.status == 422 && told.text.contains("misspelt"),
            "{provider}: {} {}",
            told.status,
            told.text
        );
    }
}
