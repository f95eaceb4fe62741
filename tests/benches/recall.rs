//! The built-in provider by size: loading, opening an existing index, and queries, through the
//! whole host, beside tantivy over the same records (`just bench-tantivy`).

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on has failed")]

use std::time::Instant;

use memhost_core::{Audit, CreateBinding};
use memhost_tests::measure::{peer, ratio, repeat, show, table};
use memhost_tests::{TestHost, caller, parse, query, upsert};
use memhost_types::{BindingLimits, Grants, RecordWrite, VersionChoice};

/// Words with a long tail, as language has them.
fn word(state: &mut u64) -> String {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let rank = ((*state % 1_000_000) as f64 / 1e6).powi(4) * 50_000.0;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let rank = rank as u64;
    format!("word{rank}")
}

fn text(state: &mut u64) -> String {
    (0..50).map(|_| word(state)).collect::<Vec<_>>().join(" ")
}

async fn measure(records: usize) -> Vec<String> {
    let mut host = TestHost::with(&[], |options| options.audit = Audit::Relaxed).await.unwrap();
    let binding = CreateBinding {
        policy: memhost_types::BindingPolicy::default(),
        key: parse("default"),
        provider_key: parse("local-markdown"),
        // The benchmark does not wait for its own disk.
        config: serde_json::json!({"durable": false}).as_object().unwrap().clone(),
        version: VersionChoice::default(),
        grants: Some(Grants {
            storage_bytes: 1 << 30,
            directory_bytes: 1 << 30,
            ..Grants::default()
        }),
        limits: BindingLimits {
            call_timeout_ms: 600_000,
            call_cpu_ms: 600_000,
            ..BindingLimits::default()
        },
        default: true,
    };
    host.service().control().create_binding(&caller(), &parse("acme"), binding).await.unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let started = Instant::now();
    let mut written = 0;
    while written < records {
        let count = (records - written).min(1_000);
        let mut request = upsert("acme", &[]);
        request.records = (0..count)
            .map(|_| RecordWrite { text: text(&mut state), ..RecordWrite::default() })
            .collect();
        host.service().operations().upsert(&caller(), request).await.unwrap();
        written += count;
    }
    let loading = started.elapsed();
    host.stop().await;
    host.start().await.unwrap();
    let started = Instant::now();
    host.query("acme", "word17").await.unwrap();
    let opening = started.elapsed();
    let service = host.service();
    let mut questions = 0_u64;
    let timings = repeat(300, || {
        questions = questions.wrapping_add(0x9e37_79b9_7f4a_7c15) | 1;
        let mut state = questions;
        let words: Vec<String> = (0..6).map(|_| word(&mut state)).collect();
        async move {
            let found = service
                .operations()
                .query(&caller(), query("acme", &words.join(" ")))
                .await
                .unwrap();
            assert!(!found.snippets.is_empty());
        }
    })
    .await;
    let usage = host.usage("acme", "default").await.unwrap();
    let memory = format!("{} MiB", usage.memory_bytes >> 20);
    let (tantivy, over) = peer("MEMHOST_PEER_TANTIVY", records).map_or_else(
        || ("not asked".to_owned(), String::new()),
        |(p50, _)| (show(p50), ratio(timings.p50(), p50)),
    );
    vec![
        records.to_string(),
        show(loading),
        show(opening),
        show(timings.p50()),
        show(timings.p99()),
        tantivy,
        over,
        memory,
    ]
}

fn main() {
    let most: usize =
        std::env::var("MEMHOST_BENCH_RECORDS").map_or(100_000, |most| most.parse().unwrap());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let sizes = [1_000, 10_000, 100_000].into_iter().filter(|size| *size <= most);
    let rows: Vec<_> = sizes.map(|size| runtime.block_on(measure(size))).collect();
    table(
        "local-markdown, records of 50 words, queries of 6 words, 10 answers",
        &[
            "records",
            "load",
            "first query after a restart",
            "query p50",
            "query p99",
            "tantivy p50",
            "over tantivy",
            "instance memory",
        ],
        &rows,
    );
}
