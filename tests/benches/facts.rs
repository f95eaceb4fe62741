//! The preamble of the provider `facts`: 50 facts and 100, beside the same pipeline around a
//! provider that does nothing.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on has failed")]

use std::time::{Duration, Instant};

use memhost_tests::measure::{Timings, ratio, repeat, show, table};
use memhost_tests::{TestHost, caller, query, scope, upsert};
use memhost_types::{BindingLimits, Intent, QueryRequest, RecordWrite, Scope};

const CALLS: usize = 5_000;

fn of(subject: &str, project: &str) -> Scope {
    let named = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
    Scope { subject_id: named(subject), project_id: named(project), ..scope("acme") }
}

/// Short enough that all of them are within the budget of 500 tokens.
fn facts(count: usize) -> Vec<RecordWrite> {
    let fact =
        |n: usize| RecordWrite { text: format!("Prefers tool {n}"), ..RecordWrite::default() };
    (0..count).map(fact).collect()
}

async fn ask(host: &TestHost, scope: &Scope, intent: Intent, top_k: u32, wanted: usize) -> Timings {
    repeat(CALLS, || async move {
        let request = QueryRequest {
            scope: scope.clone(),
            intent,
            top_k: Some(top_k),
            ..query("acme", "hello")
        };
        let found = host.service().operations().query(&caller(), request).await.unwrap();
        assert_eq!(found.snippets.len(), wanted);
    })
    .await
}

async fn measure() {
    let host = TestHost::new(&["facts", "echo"]).await.unwrap();
    host.bind("acme", "echo", BindingLimits::default()).await.unwrap();
    let floor = ask(&host, &of("u", "d"), Intent::Answer, 10, 5).await;
    host.bind("acme", "facts", BindingLimits::default()).await.unwrap();
    let write = async |scope: Scope, count: usize| {
        let started = Instant::now();
        let request =
            memhost_types::UpsertRequest { scope, records: facts(count), ..upsert("acme", &[]) };
        host.service().operations().upsert(&caller(), request).await.unwrap();
        started.elapsed()
    };
    let first = write(of("u", ""), 50).await;
    let second = write(of("", "d"), 50).await;
    let row = |name: &str, found: Duration, p99: Duration, floor: Duration| {
        let beyond = show(found.saturating_sub(floor));
        vec![name.to_owned(), show(found), show(p99), ratio(found, floor), beyond]
    };
    let of_floor = floor.p50();
    let mut rows =
        vec![row("a provider that does nothing, 5 records", of_floor, floor.p99(), of_floor)];
    for (name, scope, top_k, wanted) in [
        ("50 facts, the lists and 10 records", of("u", ""), 10, 10),
        ("50 facts, the lists and 50 records", of("u", ""), 1_000, 50),
        ("100 facts, both lists and 10 records", of("u", "d"), 10, 10),
        ("no facts", of("nobody", ""), 10, 0),
    ] {
        let found = ask(&host, &scope, Intent::AgentPreamble, top_k, wanted).await;
        rows.push(row(name, found.p50(), found.p99(), of_floor));
    }
    table(
        "facts: a preamble, through the host",
        &["what", "p50", "p99", "ratio", "beyond the floor"],
        &rows,
    );
    let writes = [("the first 50 of an instance", first), ("50 more", second)];
    let rows: Vec<Vec<String>> =
        writes.map(|(name, took)| vec![name.to_owned(), show(took)]).into();
    table("facts: writing 50 in one request, counted and on disk", &["what", "took"], &rows);
}

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure());
}
