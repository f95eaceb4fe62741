//! A log of many operations, for benchmarks.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use memhost_store::{OperationLog, SledStore};
use memhost_types::{
    CompanyId, Operation, OperationId, OperationKind, Outcome, Principal, Scope, SourceKind,
    SourceRef,
};

use crate::parse;

/// An operation of a company as a large log has it.
///
/// # Panics
/// Never: its names are well formed.
pub fn example(company: &CompanyId, sequence: u64) -> Operation {
    let started_ms = FIRST_MS + sequence * 100;
    let made = operation(sequence, started_ms).unwrap_or_else(|error| panic!("{error}"));
    let scope = Scope { company_id: company.clone(), ..made.scope };
    let source = made.source.map(|source| SourceRef { company_id: company.clone(), ..source });
    Operation { company_id: company.clone(), scope, source, ..made }
}

/// The start of the first operation, in milliseconds since 1970. The others follow every 100 ms.
pub const FIRST_MS: u64 = 1_790_000_000_000;

const KINDS: [OperationKind; 5] = [
    OperationKind::Query,
    OperationKind::Capture,
    OperationKind::RecordUpsert,
    OperationKind::List,
    OperationKind::Get,
];

fn operation(sequence: u64, started_ms: u64) -> Result<Operation> {
    let company = parse::<CompanyId>("acme");
    let mixed = sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let rare = sequence.is_multiple_of(50_000);
    let started = jiff::Timestamp::from_millisecond(i64::try_from(started_ms)?)?;
    let kind = KINDS[usize::try_from(mixed % 5)?];
    Ok(Operation {
        id: OperationId::new(started_ms, sequence, mixed),
        company_id: company.clone(),
        kind,
        outcome: if rare { Outcome::Trapped } else { Outcome::Succeeded },
        principal: Principal::Operator,
        binding_key: Some(parse(if rare { "rare" } else { "default" })),
        binding_id: None,
        provider_key: Some(parse("local-markdown")),
        provider_version: Some("0.1.0".to_owned()),
        scope: Scope {
            agent_id: Some(parse(&format!("agent-{}", mixed % 50))),
            actor_agent_id: None,
            issue_id: Some(format!("issue-{}", mixed % 20_000)),
            project_id: Some(format!("project-{}", mixed % 20)),
            run_id: Some(format!("run-{}", sequence / 16)),
            session_key: Some(format!("session-{}", sequence / 64)),
            ..Scope::company(company.clone())
        },
        source: Some(SourceRef::new(SourceKind::ALL[usize::try_from(mixed % 7)?], company)),
        hook: None,
        started_at: started,
        finished_at: Some(started),
        latency_us: Some(1_000 + mixed % 10_000),
        provider_us: Some(900),
        visibility: memhost_types::Visibility::Company,
        record_count: 5,
        records: Vec::new(),
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
    })
}

/// Writes this many operations of the company `acme`, and waits until they are indexed and the
/// store is idle.
///
/// # Errors
/// If the disk fails.
pub fn fill(store: &SledStore, count: u64) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let company = parse("acme");
    let mut last = None;
    for n in 1..=count {
        let sequence = store.take_sequence(&company).context("no sequence number is reserved")?;
        last = Some(
            store.write_operation(Arc::new(operation(sequence, FIRST_MS + n * 100)?), Vec::new()),
        );
        if n % 20_000 == 0 {
            runtime.block_on(last.take().context("no operation was written")?)?;
            while store.is_behind(&company) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
    if let Some(last) = last {
        runtime.block_on(last)?;
    }
    while store.is_behind(&company) {
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_secs(2));
    Ok(())
}
