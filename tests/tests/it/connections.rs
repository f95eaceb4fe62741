//! Connections over TCP: how many a host has, how long it waits for each, and that health checks
//! get through.

use std::time::Duration;

use memhost_server::ConnectionOptions;
use memhost_tests::{Serving, TestHost, eventually, open_store};
use memhost_types::Outcome;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::durable::serve;
use crate::mcp_http::token;
use crate::support::Api;

const TOKEN: &str = "a token of the test";
/// After this a test has failed. Nothing is measured by it.
const PATIENCE: Duration = Duration::from_secs(20);

struct Served {
    host: TestHost,
    serving: Serving,
}

impl Served {
    async fn with(options: ConnectionOptions) -> Self {
        let host =
            TestHost::new(&[]).await.unwrap().surfaces(|surfaces| surfaces.connections = options);
        let serving = Serving::start(&host, TOKEN).await.unwrap();
        Self { host, serving }
    }

    /// A connection that has sent a text.
    async fn say(&self, text: &str) -> TcpStream {
        let mut stream =
            TcpStream::connect(self.serving.url().strip_prefix("http://").unwrap()).await.unwrap();
        // A host that is full may have closed it already.
        let _ = stream.write_all(text.as_bytes()).await;
        stream
    }

    async fn get(&self, path: &str) -> String {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\nconnection: \
             close\r\n\r\n"
        );
        heard(&mut self.say(&request).await).await
    }
}

/// Everything until the host closes the connection.
async fn heard(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut all)).await;
    // A connection that is closed with something unread is reset.
    let _ = read.expect("the host keeps the connection open");
    String::from_utf8_lossy(&all).into_owned()
}

/// Until the head of an answer is there.
async fn head(stream: &mut TcpStream) -> String {
    let (mut all, mut part) = (String::new(), [0; 4_096]);
    while !all.contains("\r\n\r\n") {
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut part))
            .await
            .expect("there is no answer")
            .unwrap();
        assert!(read > 0, "the connection ended: {all}");
        all.push_str(&String::from_utf8_lossy(&part[..read]));
    }
    all
}

const SMALL: ConnectionOptions = ConnectionOptions {
    max: 64,
    max_per_address: 64,
    head_timeout_ms: 3_600_000,
    body_timeout_ms: 3_600_000,
    idle_timeout_ms: 3_600_000,
    write_timeout_ms: 3_600_000,
    max_bodies_bytes: 256 << 20,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_sent_requests_keep_nobody_out() {
    for options in [
        ConnectionOptions { max: 4_096, ..SMALL },
        ConnectionOptions { max_per_address: 4_096, ..SMALL },
    ] {
        let served = Served::with(options).await;
        let mut half = Vec::new();
        for _ in 0..300 {
            half.push(
                served.say("POST /control/v1/backups HTTP/1.1\r\nhost: x\r\ncontent-le").await,
            );
        }
        for _ in 0..10 {
            assert!(served.get("/healthz").await.starts_with("HTTP/1.1 200"));
            assert!(served.get("/control/v1/plugins").await.starts_with("HTTP/1.1 200"));
        }
        // The oldest ones went.
        assert_eq!(heard(&mut half[0]).await, "");
        served.serving.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_sent_bodies_keep_nobody_out() {
    let served = Served::with(SMALL).await;
    let head = "POST /sign-in HTTP/1.1\r\nhost: x\r\ncontent-type: \
                application/x-www-form-urlencoded\r\ncontent-length: 9\r\n\r\nt";
    let mut half = Vec::new();
    for _ in 0..200 {
        half.push(served.say(head).await);
    }
    assert!(served.get("/healthz").await.starts_with("HTTP/1.1 200"));
    assert!(served.get("/control/v1/plugins").await.starts_with("HTTP/1.1 200"));
    // Nor do they hold up the end of the host, which waits 10 s for what is in progress.
    let ends = tokio::time::timeout(Duration::from_secs(8), served.serving.stop());
    ends.await.expect("the host waits for half a request").unwrap();
}

/// What the host keeps of bodies is bounded, however many connections there are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bodies_of_all_requests_have_one_bound() {
    let served = &Served::with(ConnectionOptions { max_bodies_bytes: 1 << 20, ..SMALL }).await;
    let post = |length: usize, sent: usize| {
        format!(
            "POST /control/v1/companies/acme/tokens HTTP/1.1\r\nhost: x\r\nauthorization: Bearer \
             {TOKEN}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{}",
            " ".repeat(sent)
        )
    };
    let of = |bytes: usize| async move { heard(&mut served.say(&post(bytes, bytes)).await).await };
    let whole = || of(200_000);
    // Five fill it so that no other one fits. The host reads them when it comes to them, and one
    // may meet a whole one.
    let mut half = Vec::new();
    let refused = tokio::time::timeout(PATIENCE, async {
        loop {
            half.push(served.say(&post(8 << 20, (256 << 10) - 50)).await);
            let answer = whole().await;
            if answer.starts_with("HTTP/1.1 503") {
                return answer;
            }
            assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        }
    });
    let refused = refused.await.expect("the host reads every body");
    assert!(
        refused.contains("too_many_bodies") && refused.contains("max_bodies_bytes"),
        "{refused}"
    );
    assert!(refused.to_lowercase().contains("retry-after: 1"), "{refused}");
    assert!(
        served.get("/control/v1/plugins").await.starts_with("HTTP/1.1 200"),
        "what has no body is answered"
    );
    assert!(of(1_000).await.starts_with("HTTP/1.1 400"), "an ordinary request is answered");
    drop(half);
    while !whole().await.starts_with("HTTP/1.1 400") {
        tokio::task::yield_now().await;
    }
}

/// Two companies that send all they can leave room for the large bodies of a third one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_few_companies_do_not_use_up_the_bodies_of_all() {
    let served = &Served::with(ConnectionOptions { max_bodies_bytes: 1 << 20, ..SMALL }).await;
    let post = |(company, token): &(&str, String), length: usize, sent: usize| {
        format!(
            "POST /runtime/v1/companies/{company}/query HTTP/1.1\r\nhost: x\r\nauthorization: \
             Bearer {token}\r\n\
             connection: close\r\ncontent-type: application/json\r\ncontent-length: \
             {length}\r\n\r\n{}",
            " ".repeat(sent)
        )
    };
    let whole = async |caller: &(&str, String), bytes: usize| {
        heard(&mut served.say(&post(caller, bytes, bytes)).await).await
    };
    let mut callers = Vec::new();
    for company in ["first", "second", "third"] {
        Api::new(&served.host).make(company).await;
        let value =
            token(&served.host, company, json!({"name": "x", "role": "company_administrator"}))
                .await;
        callers.push((company, value));
    }
    let third = callers.pop().unwrap();
    let mut half = Vec::new();
    for greedy in &callers {
        let filled = tokio::time::timeout(PATIENCE, async {
            while !whole(greedy, 100_000).await.starts_with("HTTP/1.1 503") {
                half.push(served.say(&post(greedy, 8 << 20, 105_000)).await);
            }
        });
        filled.await.expect("the host reads every body");
    }
    for bytes in [60, 150_000] {
        let answer = whole(&third, bytes).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{bytes}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_at_work_on_every_connection_answers_health_checks_only() {
    let served = Served::with(ConnectionOptions { max: 16, ..SMALL }).await;
    let follow = format!(
        "GET /control/v1/stream HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
    );
    let mut streams = Vec::new();
    for _ in 0..16 {
        let mut stream = served.say(&follow).await;
        assert!(head(&mut stream).await.starts_with("HTTP/1.1 200"));
        streams.push(stream);
    }
    for path in ["/healthz", "/readyz"] {
        assert!(served.get(path).await.starts_with("HTTP/1.1 200"), "{path}");
    }
    let refused = served.get("/control/v1/plugins").await;
    assert!(
        refused.starts_with("HTTP/1.1 503") && refused.contains("too_many_connections"),
        "{refused}"
    );
    assert!(refused.to_lowercase().contains("retry-after: 1"), "{refused}");
    drop(streams.pop());
    // The host learns of the closed connection when it reads from it.
    while served.get("/control/v1/plugins").await.starts_with("HTTP/1.1 503") {
        tokio::task::yield_now().await;
    }
    served.serving.stop().await.unwrap();
}

/// A write is done to its end also where the host is stopped after its client has gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_stops_finishes_what_it_does_for_clients_that_are_gone() {
    let served = Served::with(SMALL).await;
    let body = json!({"scope": {"companyId": "acme"}, "records": [{"text": "a fact"}]}).to_string();
    let request = format!(
        "POST /runtime/v1/companies/acme/records HTTP/1.1\r\nhost: x\r\nauthorization: Bearer \
         {TOKEN}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    for _ in 0..50 {
        drop(served.say(&request).await);
    }
    // One that stays: on a busy machine all the others may be gone before they were read.
    let _stays = served.say(&request).await;
    eventually("one has begun", async || !operations(&served.host).await.is_empty()).await;
    served.serving.stop().await.unwrap();
    let outcomes = operations(&served.host).await;
    assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Succeeded), "{outcomes:?}");
}

async fn operations(host: &TestHost) -> Vec<Outcome> {
    host.operations("acme").await.unwrap().iter().map(|operation| operation.outcome).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_host_waits_for_nothing_for_ever() {
    let quick = ConnectionOptions {
        head_timeout_ms: 50,
        body_timeout_ms: 50,
        idle_timeout_ms: 50,
        ..SMALL
    };
    let served = Served::with(quick).await;
    assert_eq!(heard(&mut served.say("").await).await, "", "nothing came");
    assert_eq!(
        heard(&mut served.say("GET /healthz HTTP/1.1\r\nho").await).await,
        "",
        "half a head came"
    );
    let idle = heard(&mut served.say("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await).await;
    assert!(idle.starts_with("HTTP/1.1 200") && idle.ends_with("ok\n"), "{idle}");
    let then =
        heard(&mut served.say("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /healthz HT").await)
            .await;
    assert_eq!(then.matches("HTTP/1.1").count(), 1, "{then}");
    let body = format!(
        "POST /control/v1/tokens HTTP/1.1\r\nhost: x\r\nauthorization: Bearer \
         {TOKEN}\r\ncontent-type: application/json\r\n\
         content-length: 100\r\n\r\n{{"
    );
    let body = heard(&mut served.say(&body).await).await;
    assert!(body.starts_with("HTTP/1.1 400") && body.contains("unreadable_body"), "{body}");
    served.serving.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_loses_its_connection() {
    let served = Served::with(ConnectionOptions { write_timeout_ms: 50, ..SMALL }).await;
    // More answers than the buffers of the system hold, and nobody reads them.
    let request = "GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut stream = served.say("").await;
    let mut sent = 0;
    let closed = tokio::time::timeout(PATIENCE, async {
        while stream.write_all(request.as_bytes()).await.is_ok() {
            sent += 1;
        }
    });
    closed.await.expect("the host waits for a client that does not read");
    assert!(served.get("/healthz").await.starts_with("HTTP/1.1 200"), "after {sent} requests");
    served.serving.stop().await.unwrap();
}

#[test]
fn the_host_lets_itself_open_as_many_files_as_it_may() {
    let directory = tempfile::tempdir().unwrap();
    let (mut host, _) = serve("ulimit -S -n 256; exec \"$0\" \"$@\"", directory.path());
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", host.id())).unwrap();
    host.kill().unwrap();
    host.wait().unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<u64> =
        line.split_whitespace().skip(3).take(2).filter_map(|word| word.parse().ok()).collect();
    // The second one is missing where there is no limit.
    let most = numbers.get(1).copied().unwrap_or(u64::MAX).min(1 << 20);
    assert!(numbers[0] == most && most > 256, "{line}");
}

/// `limits.md` says what a head may have, to the byte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_with_two_hosts_is_refused() {
    let served = Served::with(ConnectionOptions::default()).await;
    for second in ["host: y\r\n", "Host: x\r\n"] {
        let request = format!(
            "GET /control/v1/companies HTTP/1.1\r\nhost: x\r\n{second}authorization: Bearer \
             {TOKEN}\r\nconnection: close\r\n\r\n"
        );
        let answer = heard(&mut served.say(&request).await).await;
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("`host`"), "{answer}");
    }
    assert!(served.get("/control/v1/companies").await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_is_as_large_as_it_may_be_and_no_larger() {
    let served = Served::with(ConnectionOptions::default()).await;
    let of = |bytes: usize| {
        let (before, after) =
            ("GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx: ", "\r\n\r\n");
        // The empty line after the head is not a part of it.
        format!("{before}{}{after}", "y".repeat(bytes + 2 - before.len() - after.len()))
    };
    for (bytes, status) in [(64 << 10, "200"), ((64 << 10) + 1, "431"), (100_000, "431")] {
        let answer = heard(&mut served.say(&of(bytes)).await).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{bytes}: {answer}");
    }
}

/// Each was let in before the erasure: the host waits for its body.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_kept_of_bodies_that_come_after_their_company_was_erased() {
    let mut served = Served::with(SMALL).await;
    let request = |(method, path): (&str, &str), body: &Value, more: &str| {
        let (body, token) =
            (body.to_string(), format!("authorization: Bearer {TOKEN}\r\nconnection: close"));
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\n{token}\r\n{more}content-type: \
             application/json\r\n"
        );
        (format!("{head}content-length: {length}\r\n\r\n"), body)
    };
    let company = |rest: &str| format!("/control/v1/companies/acme/{rest}");
    let event = json!({
        "type": "session.started", "projectId": "p", "sessionId": "late", "agentKind": "claude",
    });
    let used_as = json!({"kind": "query", "parameter": "late"});
    let all = [
        ("POST", "/runtime/v1/companies/acme/events".to_owned(), json!({"events": [event]})),
        ("POST", company("tokens"), json!({"name": "late", "role": "auditor"})),
        ("POST", company("bindings"), json!({"key": "late", "providerKey": "local-markdown"})),
        (
            "PUT",
            company("secrets/LATE"),
            json!({"value": "late value", "origins": ["https://late.example"], "usedAs": used_as}),
        ),
        ("PUT", company("budgets/month"), json!({"limitCents": 1000})),
        ("PUT", company("retention"), json!({"operationsMaxAgeDays": 30})),
    ];
    let (start, body) =
        request(("POST", &company("tokens")), &json!({"name": "first", "role": "auditor"}), "");
    assert!(heard(&mut served.say(&(start + &body)).await).await.starts_with("HTTP/1.1 201"));
    let mut waiting = Vec::new();
    for (method, path, body) in &all {
        let (start, body) = request((method, path), body, "expect: 100-continue\r\n");
        let mut stream = served.say(&start).await;
        assert!(head(&mut stream).await.starts_with("HTTP/1.1 100"), "{path}");
        waiting.push((path, stream, body));
    }
    let (start, body) = request(
        ("POST", &company("erase")),
        &json!({"confirm": "acme"}),
        "idempotency-key: late\r\n",
    );
    let erased = heard(&mut served.say(&(start + &body)).await).await;
    assert!(
        erased.starts_with("HTTP/1.1 200") && erased.contains("\"isComplete\":true"),
        "{erased}"
    );
    for (path, mut stream, body) in waiting {
        stream.write_all(body.as_bytes()).await.unwrap();
        let answer = heard(&mut stream).await;
        assert!(
            answer.starts_with("HTTP/1.1 410") && answer.contains("company_erased"),
            "{path}: {answer}"
        );
    }
    served.serving.stop().await.unwrap();
    served.host.stop().await;
    let db = open_store(served.host.data_dir());
    for name in db.tree_names() {
        for entry in &db.open_tree(&name).unwrap() {
            let (key, value) = entry.unwrap();
            let text = [String::from_utf8_lossy(&key), String::from_utf8_lossy(&value)]
                .concat()
                .to_lowercase();
            assert!(!text.contains("late"), "{text} in {}", String::from_utf8_lossy(&name));
        }
    }
}
