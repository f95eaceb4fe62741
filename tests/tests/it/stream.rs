//! Server-sent events, and batches of captures.

use std::io::{BufRead, BufReader};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use memhost_core::{Follower, HostEvent};
use memhost_server::Method;
use memhost_tests::{Serving, TestHost, caller, parse, query, upsert};
use memhost_types::CompanyId;
use serde_json::{Value, json};

use super::support::{Api, extracting};

async fn next(follower: &mut Follower) -> (String, HostEvent) {
    let notice = tokio::time::timeout(Duration::from_secs(20), follower.next())
        .await
        .expect("no event was sent");
    let notice = notice.expect("the host stopped");
    (follower.id(&notice), notice.happened.clone())
}

fn kinds(happened: &HostEvent) -> String {
    match happened {
        HostEvent::Operation(operation) => format!("{} {}", operation.kind, operation.outcome),
        HostEvent::Job(job) => format!("job {:?}", job.status).to_lowercase(),
        other => other.kind().to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_sent_in_order_and_to_their_company_only() {
    let (host, api) = extracting().await;
    let company: CompanyId = parse("acme");
    let mut here = host.service().control().follow(&caller(), Some(&company), None).await.unwrap();
    let mut elsewhere =
        host.service().control().follow(&caller(), Some(&parse("other")), None).await.unwrap();
    api.capture("acme", "job slices 3").await.fine();
    let mut told = Vec::new();
    while !told.iter().any(|kind: &String| kind == "job succeeded") {
        told.push(kinds(&next(&mut here).await.1));
    }
    assert_eq!(told[..2], ["capture succeeded", "job queued"], "{told:?}");
    assert!(told.contains(&"job running".to_owned()), "{told:?}");
    api.capture("other", "theirs").await.fine();
    assert_eq!(kinds(&next(&mut elsewhere).await.1), "capture succeeded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_resumes_after_reconnecting_and_after_a_restart() {
    let mut host = TestHost::new(&["echo"]).await.unwrap();
    host.bind("acme", "echo", Default::default()).await.unwrap();
    let company: CompanyId = parse("acme");
    let mut first = host.service().control().follow(&caller(), Some(&company), None).await.unwrap();
    for text in ["one", "two", "three"] {
        host.query("acme", text).await.unwrap();
    }
    let (id, _) = next(&mut first).await;
    let (_, second) = next(&mut first).await;
    let mut again =
        host.service().control().follow(&caller(), Some(&company), Some(&id)).await.unwrap();
    assert_eq!(next(&mut again).await.1, second, "nothing twice, nothing left out");
    assert!(
        host.service().control().follow(&caller(), Some(&company), Some("nonsense")).await.is_err()
    );
    drop((first, again));

    host.stop().await;
    host.start().await.unwrap();
    host.query("acme", "four").await.unwrap();
    let mut later =
        host.service().control().follow(&caller(), Some(&company), Some(&id)).await.unwrap();
    assert_eq!(next(&mut later).await.1, HostEvent::Reset, "missed events are reported as a reset");
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let (_, happened) = next(&mut later).await;
        let HostEvent::Operation(operation) = happened else { continue };
        seen.push(operation.id);
    }
    let all: Vec<_> =
        host.operations("acme").await.unwrap().iter().rev().map(|operation| operation.id).collect();
    assert!(
        seen.iter().all(|id| all.contains(id)) && seen.is_sorted_by_key(|id| id.sequence()),
        "{seen:?}"
    );
    assert!(seen.contains(all.last().unwrap()) || seen.len() == 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plugins_and_budgets_are_streamed() {
    let host = TestHost::new(&["echo"]).await.unwrap();
    let mut follower = host.service().control().follow(&caller(), None, None).await.unwrap();
    std::fs::write(host.directory().join("plugins/junk.wasm"), b"no component").unwrap();
    host.service().control().scan_plugins().await;
    let (_, HostEvent::Plugin(change)) = next(&mut follower).await else { panic!("a plugin") };
    let change = serde_json::to_value(change).unwrap();
    assert_eq!(change["change"], "refused");
    assert!(
        change["path"].as_str().unwrap().ends_with("junk.wasm") && change["reason"].is_string()
    );
    let set = serde_json::from_value(json!({"limitCents": 5})).unwrap();
    let period = "day".parse().unwrap();
    host.service()
        .control()
        .set_budget(&caller(), &parse("acme"), None, period, Some(set))
        .await
        .unwrap();
    let (_, HostEvent::Budget(budget)) = next(&mut follower).await else { panic!("a budget") };
    assert_eq!(budget.budget.company_id.as_str(), "acme");
}

/// The events of a stream, as a client reads them: name, id and data.
fn read_events(
    address: &str,
    path: &str,
    after: Option<&str>,
) -> Receiver<(String, String, Value)> {
    let (sender, receiver) = channel();
    let mut request =
        ureq::get(format!("{address}{path}")).header("authorization", "Bearer a token of the test");
    if let Some(after) = after {
        request = request.header("last-event-id", after);
    }
    let response = request.call().unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert!(!response.headers().contains_key("content-encoding"));
    std::thread::spawn(move || {
        let (mut name, mut id) = (String::new(), String::new());
        for line in BufReader::new(response.into_body().into_reader()).lines() {
            let Ok(line) = line else { return };
            match line.split_once(": ") {
                Some(("event", value)) => value.clone_into(&mut name),
                Some(("id", value)) => value.clone_into(&mut id),
                Some(("data", value)) => {
                    let _ = sender.send((
                        name.clone(),
                        id.clone(),
                        serde_json::from_str(value).unwrap(),
                    ));
                }
                _ => {}
            }
        }
    });
    receiver
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_http_stream_is_live_and_resumable_and_does_not_delay_stopping() {
    let host = TestHost::new(&["echo"]).await.unwrap();
    host.bind("acme", "echo", Default::default()).await.unwrap();
    let serving = Serving::start(&host, "a token of the test").await.unwrap();
    let address = serving.url().to_owned();
    const STREAM: &str = "/control/v1/companies/acme/stream?kinds=operation";
    let open = |after: Option<String>| {
        let address = address.clone();
        async move {
            tokio::task::spawn_blocking(move || read_events(&address, STREAM, after.as_deref()))
                .await
                .unwrap()
        }
    };
    let live = open(None).await;
    host.query("acme", "one").await.unwrap();
    host.service().operations().upsert(&caller(), upsert("acme", &["x"])).await.unwrap();
    let wait = Duration::from_secs(20);
    let (name, id, data) = live.recv_timeout(wait).unwrap();
    assert_eq!(
        (name.as_str(), &data["kind"], &data["outcome"]),
        ("operation", &json!("query"), &json!("succeeded"))
    );
    let (_, _, second) = live.recv_timeout(wait).unwrap();
    let back = open(Some(id)).await;
    assert_eq!(back.recv_timeout(wait).unwrap().2, second);
    let began = std::time::Instant::now();
    serving.stop().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(8), "two open streams held the host up");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_of_captures_has_a_result_for_each_line() {
    let host = TestHost::new(&["reference"]).await.unwrap();
    host.bind("acme", "reference", Default::default()).await.unwrap();
    let api = Api::new(&host);
    let line = |company: &str, text: &str| {
        json!({
            "scope": {"companyId": company}, "source": {"kind": "run", "companyId": company},
            "payload": {"text": text}, "mode": "capture_record",
        })
        .to_string()
    };
    let lines = [
        line("acme", "one"),
        String::new(),
        "{\"scope\":1}".to_owned(),
        line("other", "theirs"),
        line("acme", "two"),
    ];
    let headers = [("content-type", "application/x-ndjson"), ("idempotency-key", "batch-1")];
    const BATCH: &str = "/runtime/v1/companies/acme/capture/batch";
    let answer = api.send(Method::Post, BATCH, Some(lines.join("\n")), &headers).await;
    assert_eq!(
        (answer.status, answer.headers["content-type"].to_str().unwrap()),
        (200, "application/x-ndjson")
    );
    let results: Vec<Value> =
        answer.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown: Vec<_> = results
        .iter()
        .map(|result| (result["line"].as_u64().unwrap(), &result["status"]))
        .collect();
    assert_eq!(shown, [(1, &json!(200)), (3, &json!(400)), (4, &json!(400)), (5, &json!(200))]);
    assert!(results[0]["answer"]["operationId"].is_string());
    assert_eq!(results[1]["problem"]["field"], "scope");
    assert_eq!(results[2]["problem"]["field"], "scope.companyId");
    // A batch that is sent twice with one key is done once.
    let again = api.send(Method::Post, BATCH, Some(lines.join("\n")), &headers).await;
    assert_eq!(again.text, answer.text);
    assert_eq!(
        host.service()
            .operations()
            .query(&caller(), query("acme", "one two"))
            .await
            .unwrap()
            .snippets
            .len(),
        2
    );
    let json = api.send(Method::Post, BATCH, Some(line("acme", "x")), &[]).await;
    assert_eq!(json.problem(), (415, "unsupported_media_type"));
    let many = vec!["{}"; 1_001].join("\n");
    let many = api
        .send(Method::Post, BATCH, Some(many), &[("content-type", "application/x-ndjson")])
        .await;
    assert_eq!(many.problem(), (400, "invalid_request"));
}
