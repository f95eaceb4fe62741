//! Durable operations a second by concurrency, beside bare sled in the same run.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on has failed")]

use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

// With the allocator of the program.
use memhost_cli as _;
use memhost_store::{DiskSeam, DiskStep, OperationLog, SledOptions, SledStore};
use memhost_tests::figures;
use memhost_tests::measure::table;
use memhost_tests::parse;
use memhost_types::{
    CompanyId, Operation, OperationId, OperationKind, Outcome, Principal, RecordHandle, Scope,
    SourceKind, SourceRef,
};

/// How long each measurement takes.
fn seconds() -> Duration {
    Duration::from_secs(if figures::are_wanted() { 2 } else { 4 })
}

/// A query's record with five handles.
fn operation(sequence: u64) -> Operation {
    let company: CompanyId = parse("6f1c2c5e-0000-4000-8000-000000000001");
    let scope = Scope {
        agent_id: Some(parse(&format!("agent-{}", sequence % 20))),
        issue_id: Some(format!("issue-{}", sequence % 500)),
        run_id: Some(format!("run-{}", sequence / 16)),
        ..Scope::company(company.clone())
    };
    // From 10,000 records, in no order.
    let records = (0..5)
        .map(|n| (sequence * 5 + n).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 10_000)
        .map(|n| RecordHandle {
            provider_key: parse("local-markdown"),
            provider_record_id: parse(&format!("record-{n}")),
        })
        .collect();
    let now = jiff::Timestamp::now();
    Operation {
        id: OperationId::new(
            u64::try_from(now.as_millisecond()).unwrap(),
            sequence,
            sequence.wrapping_mul(0x9e37),
        ),
        company_id: company.clone(),
        kind: OperationKind::Query,
        outcome: Outcome::Succeeded,
        principal: Principal::Operator,
        binding_key: Some(parse("default")),
        binding_id: None,
        provider_key: Some(parse("local-markdown")),
        provider_version: Some("0.1.0".to_owned()),
        scope,
        source: Some(SourceRef::new(SourceKind::Run, company)),
        hook: None,
        started_at: now,
        finished_at: Some(now),
        latency_us: Some(1_234),
        provider_us: Some(1_000),
        visibility: memhost_types::Visibility::Company,
        record_count: 5,
        records,
        jobs: Vec::new(),
        outgoing: Vec::new(),
        usage: Vec::new(),
        attribution_mode: None,
        cost_event_ids: Vec::new(),
        error: None,
        log: Vec::new(),
        cited: Vec::new(),
        payload: None,
        count: 1,
    }
}

fn per_second(count: u64, elapsed: Duration) -> f64 {
    #[allow(clippy::cast_precision_loss)]
    let count = count as f64;
    count / elapsed.as_secs_f64()
}

/// How often the store had something synchronized.
#[derive(Default)]
struct Syncs(AtomicU64);

impl DiskSeam for Syncs {
    fn step(&self, step: DiskStep) -> io::Result<()> {
        if matches!(step, DiskStep::Sync) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Bare records of the same size, nothing else; each group on disk before the next one if it is
/// durable. Making an operation is the callers' work, here as there.
fn bare(batch_size: u64, is_durable: bool) -> f64 {
    let directory = tempfile::tempdir().unwrap();
    let db = sled::Config::new().path(directory.path()).flush_every_ms(None).open().unwrap();
    let file = std::fs::File::open(directory.path().join("db")).unwrap();
    let value = serde_json::to_vec(&operation(1)).unwrap();
    let (started, mut count) = (Instant::now(), 0_u64);
    while started.elapsed() < seconds() {
        let mut batch = sled::Batch::default();
        for _ in 0..batch_size {
            count += 1;
            black_box(operation(count));
            batch.insert(&count.to_be_bytes(), value.as_slice());
        }
        db.apply_batch(batch).unwrap();
        db.flush().unwrap();
        if is_durable {
            file.sync_data().unwrap();
        }
    }
    per_second(count, started.elapsed())
}

/// Records a second, and how many were synchronized at a time.
async fn ours(concurrency: usize) -> (f64, u64) {
    let directory = tempfile::tempdir().unwrap();
    let syncs = Arc::new(Syncs::default());
    let seam: Arc<dyn DiskSeam> = syncs.clone();
    let options = SledOptions { seam: Some(seam), ..SledOptions::default() };
    let store = Arc::new(SledStore::open(directory.path(), options).unwrap());
    let company = operation(1).company_id;
    let until = Instant::now() + seconds();
    let started = Instant::now();
    let tasks: Vec<_> = (0..concurrency)
        .map(|_| {
            let (store, company) = (Arc::clone(&store), company.clone());
            tokio::spawn(async move {
                let mut count = 0;
                while Instant::now() < until {
                    let sequence = store.take_sequence(&company).unwrap();
                    store.write_operation(Arc::new(operation(sequence)), Vec::new()).await.unwrap();
                    count += 1;
                }
                count
            })
        })
        .collect();
    let mut count = 0;
    for task in tasks {
        count += task.await.unwrap();
    }
    let elapsed = started.elapsed();
    (per_second(count, elapsed), (count / syncs.0.load(Ordering::Relaxed).max(1)).max(1))
}

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let bytes = serde_json::to_vec(&operation(1)).unwrap().len();
    let mut rows = Vec::new();
    let all: &[usize] = if figures::are_wanted() { &[64] } else { &[1, 8, 64, 256] };
    for &concurrency in all {
        let (ours, batch) = runtime.block_on(ours(concurrency));
        let (weak, floor) = (bare(batch, false), bare(batch, true));
        if concurrency == 64 {
            figures::note("durable operations at 64 at once, share of bare sled", ours / floor);
        }
        rows.push(vec![
            concurrency.to_string(),
            batch.to_string(),
            format!("{ours:.0}"),
            format!("{floor:.0}"),
            format!("{weak:.0}"),
            format!("{:.2}", ours / floor),
        ]);
    }
    table(
        &format!("Durable operations a second, records of {bytes} bytes with their indexes"),
        &[
            "at once",
            "at a time",
            "memhost",
            "bare sled, flush and fdatasync of as many at a time (floor)",
            "bare sled without fdatasync",
            "share of the floor",
        ],
        &rows,
    );
}
