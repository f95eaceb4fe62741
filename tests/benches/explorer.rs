//! The explorer's pages over a million operations: how long the host takes for one, and how much goes over the wire.
//!
//! `MEMHOST_OPERATIONS` sets how many operations there are; 1,000,000 where it is not set.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on has failed")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use memhost::contract::{Operation, OperationId, OperationKind, Outcome};
use memhost::server::{InProcess, Method, Request};
use memhost::service::{Service, ServiceOptions};
use memhost::store::{SledOptions, SledStore, Store};
use memhost_tests::measure::{Timings, show, table};
use memhost_tests::parse;
use serde_json::json;

/// Of the last 30 days, of many agents, issues and runs.
fn operation(sequence: u64, ms: u64) -> Operation {
    let mixed = sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    let started = jiff::Timestamp::from_millisecond(i64::try_from(ms).unwrap()).unwrap();
    let kind = [OperationKind::Query, OperationKind::Capture, OperationKind::Get][usize::try_from(mixed % 3).unwrap()];
    let value = json!({
        "id": OperationId::new(ms, sequence, mixed), "companyId": "acme", "kind": kind,
        "outcome": if mixed.is_multiple_of(50) { Outcome::Failed } else { Outcome::Succeeded },
        "principal": "operator", "bindingKey": "default", "providerKey": "local-markdown", "providerVersion": "0.1.0",
        "scope": {
            "companyId": "acme", "agentId": format!("agent-{}", mixed % 20), "issueId": format!("issue-{}", mixed % 2_000),
            "runId": format!("run-{}", sequence / 16),
        },
        "source": {"kind": "run", "companyId": "acme", "runId": format!("run-{}", sequence / 16)},
        "startedAt": started, "finishedAt": started, "latencyUs": 1_000 + mixed % 10_000, "providerUs": 900,
        "recordCount": 5,
    });
    serde_json::from_value(value).unwrap()
}

fn fill(directory: &std::path::Path, count: u64) {
    let store = SledStore::open(directory, SledOptions::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (company, mut last) = (parse("acme"), None);
    let now = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap();
    let step = 30 * 86_400_000 / count;
    for n in 1..=count {
        let sequence = store.next_sequence(&company).unwrap();
        last = Some(store.write_operation(Arc::new(operation(sequence, now - (count - n) * step)), Vec::new()));
        if n % 20_000 == 0 || n == count {
            runtime.block_on(last.take().unwrap()).unwrap();
            while store.is_behind(&company) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
    drop(last);
}

/// The value of a cookie that an answer sets.
fn cookie(answer: &http::Response<Vec<u8>>, name: &str) -> String {
    let all = answer.headers().get_all("set-cookie").iter().filter_map(|value| value.to_str().ok());
    let found = all.filter_map(|value| value.split(';').next()).find(|value| value.starts_with(name));
    found.unwrap().to_owned()
}

#[tokio::main]
async fn main() {
    let count: u64 = std::env::var("MEMHOST_OPERATIONS").map_or(1_000_000, |count| count.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let (path, started) = (directory.path().to_owned(), Instant::now());
    tokio::task::spawn_blocking(move || fill(&path, count)).await.unwrap();
    println!("{count} operations written and indexed in {}", show(started.elapsed()));
    let service = Service::open(ServiceOptions::new(directory.path())).await.unwrap();
    let http = InProcess::new(service);
    let send = async |method, path: &str, body: Option<String>, headers: &[(&'static str, &str)]| {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        http.respond(Request { method, path: path.to_owned(), body, headers }).await
    };
    let made = json!({"name": "bench", "role": "operator"}).to_string();
    let made = send(Method::Post, "/control/v1/tokens", Some(made), &[]).await;
    let made: serde_json::Value = serde_json::from_slice(made.body()).unwrap();
    let form = send(Method::Get, "/sign-in", None, &[]).await;
    let text = String::from_utf8_lossy(form.body()).into_owned();
    let csrf = text.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let body = format!("csrf={csrf}&token={}", made["value"].as_str().unwrap());
    let tie = cookie(&form, "memhost_sign_in");
    let signed_in = send(Method::Post, "/sign-in", Some(body), &[("cookie", &tie)]).await;
    let session = cookie(&signed_in, "memhost_session");

    let mut rows = Vec::new();
    for path in [
        "/c/acme",
        "/c/acme/operations",
        "/c/acme/operations?agentId=agent-7",
        "/c/acme/operations?issueId=issue-77&kind=capture",
        "/c/acme/operations?outcome=failed&agentId=agent-7",
        "/c/acme/costs",
    ] {
        let (mut all, mut size) = (Vec::new(), 0);
        for _ in 0..100 {
            let started = Instant::now();
            let answer = send(Method::Get, path, None, &[("cookie", &session), ("accept-encoding", "gzip")]).await;
            all.push(started.elapsed());
            assert_eq!(answer.status(), 200, "{path}");
            assert_eq!(answer.headers()["content-encoding"], "gzip", "{path}");
            size = answer.body().len();
        }
        let timings = Timings::new(all);
        rows.push(vec![path.to_owned(), show(timings.p50()), show(timings.p99()), format!("{size} B")]);
    }
    table(&format!("Pages over {count} operations, packed"), &["page", "p50", "p99", "on the wire"], &rows);
}
