//! A full disk over HTTP, a disk that fails under `memhost serve`, and what the process asks of the
//! system before it answers.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memhost_server::Method;
use memhost_store::DiskSeam;
use memhost_tests::{TestHost, cache_dir, eventually, needed};
use serde_json::{Value, json};

use crate::support::{Answer, Api};

/// A disk with as much free space as a test says.
#[derive(Default)]
struct Room(AtomicU64);

impl DiskSeam for Room {
    fn free(&self) -> Option<u64> {
        Some(self.0.load(Ordering::SeqCst)).filter(|free| *free > 0)
    }
}

const RESERVE: u64 = 64 << 20;

async fn host() -> (TestHost, Api, Arc<Room>) {
    let room = Arc::<Room>::default();
    let seam = Arc::clone(&room);
    let host = TestHost::with(&[], |options| {
        options.store.reserve_bytes = RESERVE;
        options.store.seam = Some(seam);
    })
    .await
    .unwrap();
    let api = Api::new(&host);
    (host, api, room)
}

async fn write(api: &Api, text: &str) -> Answer {
    let source = json!({ "kind": "manual_note", "companyId": "acme" });
    let body = json!({
        "scope": { "companyId": "acme" }, "source": source, "records": [{ "text": text }],
    });
    api.post("/runtime/v1/companies/acme/records", &body).await
}

async fn query(api: &Api) -> Answer {
    let body = json!({ "scope": { "companyId": "acme" }, "query": "deploys", "topK": 5 });
    api.post("/runtime/v1/companies/acme/query", &body).await
}

fn refused(answer: &Answer) {
    assert_eq!(
        (answer.status, &answer.json["code"]),
        (503, &json!("disk_full")),
        "{}",
        answer.text
    );
    assert_eq!(answer.headers["retry-after"], "10");
    assert!(answer.json["detail"].as_str().unwrap().contains("MiB are free"), "{}", answer.text);
}

#[tokio::test]
async fn a_full_disk_refuses_new_data_and_goes_on_by_itself() {
    let (_host, api, room) = host().await;
    api.make("other").await;
    let company = "/control/v1/companies/acme";
    let written = write(&api, "deploys are frozen on Fridays").await.fine();
    let token = api
        .post(&format!("{company}/tokens"), &json!({ "name": "old", "role": "auditor" }))
        .await
        .fine();
    let used_as = json!({"kind": "query", "parameter": "key"});
    let secret =
        json!({"value": "a long value", "origins": ["https://api.example.com"], "usedAs": used_as});
    api.put(&format!("{company}/secrets/old"), &secret).await.fine();
    let operations = async || {
        api.get(&format!("{company}/operations?limit=1000")).await["items"]
            .as_array()
            .unwrap()
            .len()
    };
    let before = operations().await;

    room.0.store(RESERVE - 1, Ordering::SeqCst);
    // The level is what the last write or look found; a thread looks several times a second.
    let ready = async || api.send(Method::Get, "/readyz", None, &[]).await.text;
    eventually("the level changes", async || ready().await.contains("only reads")).await;
    refused(&write(&api, "new").await);
    refused(
        &api.post(&format!("{company}/tokens"), &json!({ "name": "new", "role": "auditor" })).await,
    );
    refused(&api.put(&format!("{company}/secrets/new"), &secret).await);
    let event = json!({
        "type": "session.started", "projectId": "p", "sessionId": "s", "agentKind": "claude",
    });
    refused(&api.post("/runtime/v1/companies/acme/events", &json!({ "events": [event] })).await);
    let hook = json!({
        "hookKind": "manual_capture", "hookId": "h", "triggeredAt": "2026-01-01T00:00:00Z",
        "scope": { "companyId": "acme" }, "source": { "kind": "manual_note", "companyId": "acme" },
        "payload": { "text": "something" },
    });
    refused(&api.post("/runtime/v1/companies/acme/hooks", &hook).await);
    assert_eq!(operations().await, before, "a refusal takes no room");
    // Reads are answered and recorded; what is there can go.
    assert_eq!(query(&api).await.fine()["snippets"].as_array().unwrap().len(), 1);
    assert_eq!(operations().await, before + 1);
    let ready = api.send(Method::Get, "/readyz", None, &[]).await;
    assert!(ready.status == 200 && ready.text.contains("only reads"), "{}", ready.text);
    let doctor = api.get("/control/v1/doctor").await;
    let disk = |doctor: &Value| {
        doctor["items"].as_array().unwrap().iter().find(|check| check["name"] == "disk").cloned()
    };
    assert_eq!(disk(&doctor).unwrap()["health"], "warning");
    let metrics = api.send(Method::Get, "/metrics", None, &[]).await.text;
    assert!(metrics.contains("memhost_disk{state=\"low\"} 1"), "{metrics}");

    room.0.store(RESERVE / 4 - 1, Ordering::SeqCst);
    eventually("the level changes again", async || query(&api).await.status == 503).await;
    refused(&query(&api).await);
    assert_eq!(api.send(Method::Get, "/readyz", None, &[]).await.status, 503);
    assert_eq!(api.send(Method::Get, "/healthz", None, &[]).await.status, 200);
    let delete = async |path: String| api.send(Method::Delete, &path, None, &[]).await.status;
    assert!(delete(format!("{company}/tokens/{}", token["id"].as_str().unwrap())).await < 300);
    assert!(delete(format!("{company}/secrets/old")).await < 300);
    let forget = json!({ "scope": { "companyId": "acme" }, "handles": [written["records"][0]] });
    api.post("/runtime/v1/companies/acme/forget", &forget).await.fine();
    let erased = api.post(&format!("{company}/erase"), &json!({ "confirm": "acme" })).await;
    assert!(erased.status < 300, "{}", erased.text);

    room.0.store(RESERVE * 2, Ordering::SeqCst);
    let body =
        |company: &str| json!({ "scope": { "companyId": company }, "query": "x", "topK": 1 });
    eventually("it goes on", async || {
        api.post("/runtime/v1/companies/other/query", &body("other")).await.status == 200
    })
    .await;
    assert_eq!(api.send(Method::Get, "/readyz", None, &[]).await.text, "ready\n");
}

/// `memhost serve` with a shell in front of it, and the address that it says.
pub(crate) fn serve(shell: &str, data: &Path) -> (Child, String) {
    let mut host = Command::new("sh")
        .args(["-c", shell, env!("CARGO_BIN_EXE_memhost-cli")])
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data)
        .env("MEMHOST_OPERATOR_TOKEN", TOKEN)
        .env("MEMHOST_CACHE_DIR", cache_dir())
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(host.stdout.take().unwrap()).lines();
    let address =
        lines.map_while(Result::ok).find_map(|line| Some(line[line.find("http://")?..].to_owned()));
    (host, address.expect("the host does not start"))
}

const TOKEN: &str = "a-token-of-the-operator";

fn emit(agent: &ureq::Agent, url: &str, name: &str, bytes: usize) -> Result<u16, ureq::Error> {
    let event = json!({
        "eventId": name, "type": "session.started", "projectId": "p", "sessionId": "s",
        "agentKind": "claude",
        "details": { "text": "x".repeat(bytes) },
    });
    let request = agent.post(format!("{url}/runtime/v1/companies/acme/events"));
    let request = request.header("authorization", format!("Bearer {TOKEN}"));
    request.send_json(json!({ "events": [event] })).map(|answer| answer.status().as_u16())
}

/// Makes the company that the events are of.
fn make(agent: &ureq::Agent, url: &str) {
    let request = agent.put(format!("{url}/control/v1/companies/acme"));
    let made = request.header("authorization", format!("Bearer {TOKEN}")).send_empty().unwrap();
    assert!(made.status().is_success(), "{made:?}");
}

fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    config.timeout_global(Some(std::time::Duration::from_secs(60))).build().into()
}

/// A limit on the file size stands for a disk that fails: the system refuses the write at the same
/// place.
#[test]
fn a_disk_that_fails_ends_the_process_at_once_with_its_own_code() {
    let directory = tempfile::tempdir().unwrap();
    // `ulimit -f` counts 512 bytes.
    let (mut host, url) =
        serve("trap '' XFSZ; ulimit -f 8192; exec \"$0\" \"$@\"", directory.path());
    let agent = agent();
    make(&agent, &url);
    let mut accepted = 0;
    for number in 0..2_000 {
        match emit(&agent, &url, &number.to_string(), 15_000) {
            Ok(status) if status < 300 => accepted += 1,
            _ => break,
        }
    }
    assert!(accepted > 10, "only {accepted} events before the limit");
    let ended = host.wait_with_output_in(std::time::Duration::from_secs(30));
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(6), "{said}");
    assert!(said.contains("start the host again"), "{said}");
    // What was acknowledged is there.
    let (mut host, url) = serve("exec \"$0\" \"$@\"", directory.path());
    let request = agent.get(format!("{url}/control/v1/companies/acme/events?limit=1000"));
    let mut answer = request.header("authorization", format!("Bearer {TOKEN}")).call().unwrap();
    let page: Value = answer.body_mut().with_config().limit(1 << 30).read_json().unwrap();
    assert!(page["items"].as_array().unwrap().len() >= accepted);
    host.kill().unwrap();
    host.wait().unwrap();
}

trait WaitIn {
    fn wait_with_output_in(&mut self, most: std::time::Duration) -> std::process::Output;
}

impl WaitIn for Child {
    fn wait_with_output_in(&mut self, most: std::time::Duration) -> std::process::Output {
        use std::io::Read;
        let until = std::time::Instant::now() + most;
        while self.try_wait().unwrap().is_none() && std::time::Instant::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        // Nothing happens to a process that has ended.
        let _ = self.kill();
        let (status, mut stderr) = (self.wait().unwrap(), Vec::new());
        self.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
        std::process::Output { status, stdout: Vec::new(), stderr }
    }
}

/// The system calls of the process: `fdatasync` on sled's file comes after its write and before the
/// answer.
#[test]
fn the_system_is_asked_to_write_to_the_disk_before_an_answer() {
    let found = Command::new("strace")
        .arg("-V")
        .output()
        .map_err(|error| format!("strace is not installed: {error}"));
    if needed(found).is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    let calls = "trace=pwrite64,fdatasync,fsync,sendto,write,writev";
    // With `-D` the traced process is the child, and ends when it is killed.
    let shell =
        format!("exec strace -D -f -y -s 24 -e {calls} -o '{}' \"$0\" \"$@\"", trace.display());
    let (mut host, url) = serve(&shell, &directory.path().join("data"));
    let agent = agent();
    make(&agent, &url);
    for number in 0..5 {
        assert!(emit(&agent, &url, &number.to_string(), 100).unwrap() < 300);
    }
    host.kill().unwrap();
    host.wait().unwrap();
    let read = || std::fs::read_to_string(&trace).unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !read().contains("+++ killed") && std::time::Instant::now() < until {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let text = read();
    let (mut is_written, mut is_synced, mut answers) = (false, false, 0);
    // Other threads' calls come between the two halves of a call.
    let mut syncing = Vec::new();
    for line in text.lines() {
        let thread = line.split(' ').next().unwrap_or_default();
        if line.contains("pwrite64(") && line.contains("/store/db>") {
            (is_written, is_synced) = (true, false);
        } else if line.contains("fdatasync(") && line.contains("/store/db>") {
            match line.contains("unfinished") {
                true => syncing.push(thread),
                false => is_synced = is_written,
            }
        } else if line.contains("fdatasync resumed") && syncing.contains(&thread) {
            syncing.retain(|other| *other != thread);
            is_synced = is_written;
        } else if line.contains("HTTP/1.1 201") {
            assert!(is_synced, "answer {answers} came before the disk had it:\n{text}");
            (is_written, is_synced, answers) = (false, false, answers + 1);
        }
    }
    assert_eq!(answers, 5, "{text}");
}
