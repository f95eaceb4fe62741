//! What left the host, by origin: in the operation, the API, the explorer and the metrics.

use memhost_types::BindingLimits;
use serde_json::{Value, json};

use super::egress::{LOOPBACK, Setup};
use super::support::Api;
use super::ui_pages::operator;

const OUTGOING: &str = "/control/v1/companies/acme/outgoing";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_leaves_is_counted_by_origin_and_what_does_not_is_counted_as_refused() {
    let setup = Setup::new(&["GET"], LOOPBACK, BindingLimits::default()).await;
    let api = Api::new(&setup.host);
    assert_eq!(api.get(OUTGOING).await["items"], json!([]), "nothing was sent");
    let answer = setup.send("acme", json!({"path": "/a?b=c"})).await;
    assert!(answer.starts_with("200"), "{answer}");
    setup.send("acme", json!({"path": "/redirect"})).await;
    setup.send("acme", json!({"method": "POST"})).await;
    setup.send("acme", json!({"authority": "one.evil.example"})).await;
    setup.send("acme", json!({"authority": "two.evil.example"})).await;

    let report = api.get(OUTGOING).await;
    let items = report["items"].as_array().unwrap();
    let row = |origin: &str| items.iter().find(|row| row["origin"] == *origin).unwrap().clone();
    let origin = format!("http://localhost:{}", setup.port);
    let sent = row(&origin);
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap();
    assert_eq!((number(&sent, "requests"), number(&sent, "failed")), (2, 0), "{report}");
    assert_eq!((&sent["bindingKey"], &sent["provider"]), (&json!("default"), &json!("sends")));
    // The path of a question is text that leaves, too.
    assert!(number(&sent, "bytesSent") >= "/a?b=c/redirect".len() as u64, "{report}");
    assert!(number(&sent, "bytesReceived") > 0 && sent["lastAt"].is_string(), "{report}");
    // A guest chooses these names, and a method: they make no rows of their own.
    let refused = row("not granted");
    assert_eq!((number(&refused, "refused"), number(&refused, "requests")), (3, 0), "{report}");
    assert_eq!((items.len(), number(&report["total"], "requests")), (2, 2), "{report}");
    let other = format!("{OUTGOING}?bindingKey=other");
    assert_eq!(api.get(&other).await["items"], json!([]));
    let past = format!("{OUTGOING}?until=2000-01-01");
    assert_eq!(api.get(&past).await["items"], json!([]), "other days");

    // The sums of costs know nothing of it.
    let costs = api.get("/control/v1/companies/acme/costs?groupBy=agent").await;
    assert_eq!(costs["rows"].as_array().unwrap().len(), 1, "{costs}");

    let operations = setup.host.operations("acme").await.unwrap();
    let first = operations.last().unwrap();
    assert_eq!((first.outgoing.len(), first.outgoing[0].origin.as_str()), (1, origin.as_str()));
    let log: Vec<_> = first.log.iter().map(|line| line.text.as_str()).collect();
    assert!(log.join(" ").contains(&format!("GET {origin}/a: 200 with ")), "{log:?}");

    let page = operator(&api).await.page("/c/acme/outgoing").await;
    assert!(page.contains(&origin) && page.contains("not granted"), "{page}");
    let metrics = api.send(memhost_server::Method::Get, "/metrics", None, &[]).await.text;
    let line = format!("origin_requests_total{{origin=\"{origin}\",provider=\"sends\"");
    assert!(metrics.contains(&line), "{metrics}");
}

/// A server that goes away in the middle: what was sent has left all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_without_an_answer_has_left_and_failed() {
    let limits = BindingLimits { call_timeout_ms: 300, ..BindingLimits::default() };
    let setup = Setup::new(&["GET"], LOOPBACK, limits).await;
    setup.send("acme", json!({"path": "/slow"})).await;
    let report = Api::new(&setup.host).get(OUTGOING).await;
    let row = &report["items"][0];
    assert_eq!((&row["requests"], &row["failed"]), (&json!(1), &json!(1)), "{report}");
    assert!(row["bytesSent"].as_u64().unwrap() >= 5, "{report}");
}
