//! How the provider stands a number of records: time to load, to open and to ask, and memory,
//! natively.
//!
//! `cargo run --release --example scale -- [RECORDS]`

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a measuring tool may stop at the first mistake"
)]

use std::time::{Duration, Instant};

use memhost_local_markdown::LocalMarkdown;
use memhost_sdk::types::{RecordWrite, Scope, UpsertRequest};
use memhost_sdk::{Provider, testing};
use serde_json::json;

const BATCH: usize = 1_000;
const WORDS: usize = 50;
const VOCABULARY: u64 = 50_000;
const QUESTIONS: usize = 2_000;

/// A generator that is the same everywhere (Steele et al. 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A word, the frequent ones more often, about as in a language (Zipf).
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank"
    )]
    fn word(&mut self) -> String {
        let uniform = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let rank = (VOCABULARY as f64).powf(uniform) as u64;
        format!("w{}", rank.wrapping_mul(2_654_435_761) % 1_000_003)
    }

    fn text(&mut self, words: usize) -> String {
        (0..words).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }
}

fn main() {
    let records: usize =
        std::env::args().nth(1).map_or(100_000, |text| text.parse().expect("a number of records"));
    let directory = tempfile::tempdir().unwrap();
    let mut random = SplitMix(7);
    let mut provider: LocalMarkdown =
        testing::open_in(directory.path(), json!({"durable": false})).unwrap();
    let start = Instant::now();
    for batch in 0..records / BATCH {
        let write = |n: usize, random: &mut SplitMix| RecordWrite {
            id: Some(format!("record-{batch}-{n}")),
            text: random.text(WORDS),
            metadata: Some(json!({"speaker": format!("name{}", n % 7)}).to_string()),
            ..RecordWrite::default()
        };
        let records = (0..BATCH).map(|n| write(n, &mut random)).collect();
        let scope =
            Scope { session_key: Some(format!("session-{}", batch * 10)), ..testing::scope() };
        let request =
            UpsertRequest { operation_id: format!("load-{batch}"), scope, source: None, records };
        provider.upsert_records(request).unwrap();
    }
    println!("load      {:?} for {records} records", start.elapsed());
    drop(provider);
    println!("memory    {} MiB without an index (the test kit's storage)", resident());
    let start = Instant::now();
    let mut provider: LocalMarkdown = testing::reopen().unwrap();
    println!("open      {:?}", start.elapsed());
    println!("memory    {} MiB with it", resident());
    let mut times: Vec<Duration> = (0..QUESTIONS)
        .map(|_| {
            let request = testing::query(&random.text(6));
            let start = Instant::now();
            let found = provider.query(request).unwrap();
            assert!(!found.snippets.is_empty());
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    println!("query     p50 {:?}, p99 {:?}", times[QUESTIONS / 2], times[QUESTIONS * 99 / 100]);
    let start = Instant::now();
    for n in 0..100 {
        provider.capture(testing::capture(&format!("one-{n}"), &random.text(WORDS))).unwrap();
    }
    println!("capture   {:?} each", start.elapsed() / 100);
    testing::lose_storage();
    let start = Instant::now();
    drop(testing::reopen::<LocalMarkdown>().unwrap());
    println!("rebuild   {:?}", start.elapsed());
}

/// Resident memory of this process in MiB, where the system tells.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next())
        .and_then(|kib| kib.parse::<u64>().ok())
        .unwrap_or(0)
        / 1_024
}
