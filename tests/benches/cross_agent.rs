//! Recall of `cross-agent` by size, in the sandbox and through the whole host. The lower bound is
//! the same question to the same provider with ten items: the cost of the pipeline and of ten
//! answers without a search.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on has failed")]

use std::time::Instant;

use memhost_core::CreateBinding;
use memhost_tests::measure::{Timings, ratio, repeat, show, table};
use memhost_tests::{TestHost, caller, parse, query, upsert};
use memhost_types::{
    BindingLimits, Grants, Intent, JsonObject, QueryRequest, RecordWrite, VersionChoice,
};
use serde_json::json;

/// Projects that share the binding.
const PROJECTS: u64 = 10;
const COMPANY: &str = "acme";

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// A word with a long tail, as language has them.
fn word(state: &mut u64) -> String {
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let rank = (((random(state) % 1_000_000) as f64 / 1e6).powi(4) * 50_000.0) as u64;
    format!("word{rank}")
}

fn item(number: usize, state: &mut u64) -> RecordWrite {
    let text = (0..40).map(|_| word(state)).collect::<Vec<_>>().join(" ");
    let days = random(state) % 365;
    let at = jiff::Timestamp::now()
        - jiff::SignedDuration::from_hours(24 * i64::try_from(days).unwrap());
    let kinds = ["fact", "preference", "decision", "task_context", "tool_observation"];
    let agent = if number.is_multiple_of(2) { "codex" } else { "claude" };
    #[allow(clippy::cast_precision_loss)]
    let confidence = (random(state) % 100) as f64 / 100.0;
    let metadata = json!({
        "type": kinds[number % 5], "agentKind": agent, "sessionId": format!("s{}", number / 50),
        "confidence": confidence, "visibility": "project", "source": "inferred",
        "tags": [word(state)], "createdAt": at, "updatedAt": at,
    });
    RecordWrite { text, metadata: Some(object(&metadata)), ..RecordWrite::default() }
}

fn object(json: &serde_json::Value) -> JsonObject {
    json.as_object().unwrap().clone()
}

struct Measured {
    load: std::time::Duration,
    open: std::time::Duration,
    recall: Timings,
    memory: u64,
}

async fn measure(items: usize, projects: u64) -> Measured {
    let mut host = TestHost::new(&["cross-agent"]).await.unwrap();
    let binding = CreateBinding {
        policy: memhost_types::BindingPolicy::default(),
        key: parse("shared"),
        provider_key: parse("cross-agent"),
        config: JsonObject::new(),
        version: VersionChoice::default(),
        grants: Some(Grants { storage_bytes: 1 << 30, ..Grants::default() }),
        limits: BindingLimits {
            call_timeout_ms: 600_000,
            call_cpu_ms: 600_000,
            ..BindingLimits::default()
        },
        default: true,
    };
    host.service().control().create_binding(&caller(), &parse(COMPANY), binding).await.unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let started = Instant::now();
    let mut written = 0;
    while written < items {
        let count = (items - written).min(1_000);
        let mut request = upsert(COMPANY, &[]);
        request.scope.project_id = Some(format!("p{}", (written as u64 / 1_000) % projects));
        request.records = (0..count).map(|number| item(written + number, &mut state)).collect();
        host.service().operations().upsert(&caller(), request).await.unwrap();
        written += count;
    }
    let load = started.elapsed();
    host.stop().await;
    host.start().await.unwrap();
    let mut state = 88_172_645_463_325_252;
    let mut ask = || {
        let words: Vec<String> = (0..6).map(|_| word(&mut state)).collect();
        let mut request = query(COMPANY, &words.join(" "));
        request.scope.project_id = Some(format!("p{}", random(&mut state) % projects));
        QueryRequest { intent: Intent::AgentPreamble, ..request }
    };
    let started = Instant::now();
    host.service().operations().query(&caller(), ask()).await.unwrap();
    let open = started.elapsed();
    let service = host.service();
    let recall = repeat(500, || {
        let request = ask();
        async move {
            let found = service.operations().query(&caller(), request).await.unwrap();
            assert!(!found.snippets.is_empty());
        }
    })
    .await;
    let usage =
        service.control().binding(&parse(COMPANY), &parse("shared")).await.unwrap().usage.unwrap();
    Measured { load, open, recall, memory: usage.memory_bytes }
}

fn main() {
    let most: usize =
        std::env::var("MEMHOST_BENCH_RECORDS").map_or(100_000, |most| most.parse().unwrap());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let floor = runtime.block_on(measure(10, 1));
    let row = |items: usize, projects: u64, found: &Measured| {
        let (p50, p99) = (found.recall.p50(), found.recall.p99());
        let memory = format!("{} MiB", found.memory >> 20);
        let beside = ratio(p50, floor.recall.p50());
        vec![
            items.to_string(),
            projects.to_string(),
            show(found.load),
            show(found.open),
            show(p50),
            show(p99),
            beside,
            memory,
        ]
    };
    let mut rows = vec![row(10, 1, &floor)];
    for (items, projects) in [(10_000, PROJECTS), (100_000, PROJECTS), (100_000, 1)] {
        if items <= most {
            rows.push(row(items, projects, &runtime.block_on(measure(items, projects))));
        }
    }
    table(
        "cross-agent, items of 40 words, recall of 6 words, 10 answers",
        &[
            "items",
            "projects",
            "load",
            "first recall after a restart",
            "recall p50",
            "recall p99",
            "beside ten items",
            "instance memory",
        ],
        &rows,
    );
}
