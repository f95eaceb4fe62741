//! The control plane: authorization and resolution, repeated hooks, and the explorer's pages over
//! ten million operations.
//!
//! `MEMHOST_OPERATIONS` sets how many operations the explorer's data set has; the default is
//! 10,000,000.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on has failed")]

use std::sync::Arc;
use std::time::Instant;

use memhost_core::{
    Act, ActivityLog, Bindings, Caller, CreateToken, Known, KnownCompanies, NewBinding, Tokens,
};
use memhost_ports::{Clock, SystemClock};
use memhost_store::{OperationLog, SledOptions, SledStore, Store, Transacted};
use memhost_tests::measure::{Timings, show, table};
use memhost_tests::operations::{FIRST_MS, fill};
use memhost_tests::{TestHost, caller, parse};
use memhost_types::{
    Binding, BindingLimits, BindingPolicy, Grants, HookEvent, JsonObject, OperationFilter,
    OperationKind, Outcome, Principal, Scope, SourceKind, VersionChoice,
};
use serde_json::json;

#[tokio::main]
async fn main() {
    let runs = |name: &str| {
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).all(|arg| arg == name)
    };
    if runs("access") {
        access().await;
    }
    if runs("hooks") {
        hooks().await;
    }
    if runs("explorer") {
        tokio::task::spawn_blocking(explorer).await.unwrap();
    }
}

/// 1,000 companies with ten bindings and a token each. The lower bound is a lookup in a map by the
/// same key.
async fn access() {
    const COMPANIES: usize = 1_000;
    const CALLS: usize = 200_000;
    let directory = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> =
        Arc::new(SledStore::open(directory.path(), SledOptions::default()).unwrap());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let known = Arc::new(KnownCompanies::open(&*store).await.unwrap());
    let activity = Arc::new(ActivityLog::new(Arc::clone(&store), Arc::clone(&clock), known));
    let opened = Bindings::open(Arc::clone(&store), Arc::clone(&clock), activity).await;
    let bindings = opened.unwrap();
    let tokens = Tokens::open(Arc::clone(&store), clock).await.unwrap();
    let mut values = Vec::new();
    for n in 0..COMPANIES {
        let company = parse(&format!("6f1c2c5e-0000-4000-8000-{n:012}"));
        for key in 0..10 {
            let new = NewBinding {
                key: parse(&format!("binding-{key}")),
                provider_key: parse("local-markdown"),
                config: JsonObject::new(),
                version: VersionChoice::default(),
                grants: Grants::default(),
                reviewed: Vec::new(),
                limits: BindingLimits::default(),
                policy: BindingPolicy::default(),
                make_default: key == 0,
                id: None,
            };
            let made: Arc<Binding> =
                bindings.create(&Principal::Operator, &company, new).await.unwrap();
            assert_eq!(made.revision, 1);
        }
        let request = json!({"name": "ada", "role": "agent", "agentId": "ada"});
        let request: CreateToken = serde_json::from_value(request).unwrap();
        let (made, change) =
            tokens.make(&Caller::operator(), Some(&company), request).await.unwrap();
        let Transacted::Done(commit) = store.transact(std::slice::from_ref(&change)).await.unwrap()
        else {
            unreachable!()
        };
        commit.await.unwrap();
        tokens.apply(&change).unwrap();
        values.push((company, made.value));
    }
    let map: std::collections::HashMap<&str, usize> =
        values.iter().enumerate().map(|(n, (_, value))| (value.as_str(), n)).collect();
    let (values, map) = (&values, &map);
    let floor = timed(CALLS, COMPANIES, &|n| {
        std::hint::black_box(map.get(values[n].1.as_str()));
    });
    let whole = timed(CALLS, COMPANIES, &|n| {
        let (company, value) = &values[n];
        let Some(Known::Valid(caller)) = tokens.find(value) else { unreachable!() };
        let mut scope = Scope::company(company.clone());
        caller.may_in(Act::Operate(OperationKind::Query), &mut scope).unwrap();
        std::hint::black_box(bindings.resolve(company, scope.agent_id.as_ref(), None).unwrap());
    });
    let row = |name: &str, timings: &Timings| {
        vec![name.to_owned(), show(timings.p50()), show(timings.p99())]
    };
    table(
        "Authorization and resolution: 1,000 companies, 10,000 bindings",
        &["what", "p50", "p99"],
        &[
            row("floor: one lookup in a map", &floor),
            row("token, authorization, scope and resolution", &whole),
        ],
    );
}

fn timed(calls: usize, companies: usize, call: &dyn Fn(usize)) -> Timings {
    let mut all = Vec::with_capacity(calls);
    for n in 0..calls {
        let started = Instant::now();
        call(n * 7_919 % companies);
        all.push(started.elapsed());
    }
    Timings::new(all)
}

/// One hook 64 times at once, and many hooks, each durable before it is answered.
async fn hooks() {
    let host = TestHost::new(&["extracts"]).await.unwrap();
    host.bind("acme", "extracts", BindingLimits::default()).await.unwrap();
    let event = |id: String| -> HookEvent {
        serde_json::from_value(json!({
            "hookKind": "post_run_capture", "hookId": id, "triggeredAt": "2026-11-20T10:00:00Z",
            "scope": {"companyId": "acme"}, "source": {"kind": "run", "companyId": "acme"},
            "payload": {"text": "a fact"}, "waitMs": 20_000,
        }))
        .unwrap()
    };
    let mut rows = Vec::new();
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let (service, event) = (Arc::clone(host.service()), event("same".to_owned()));
        tasks.spawn(async move {
            Arc::clone(service.background()).deliver(&caller(), event).await.unwrap()
        });
    }
    let receipts = tasks.join_all().await;
    let alike = receipts.iter().all(|receipt| receipt.deliveries == receipts[0].deliveries);
    let calls = host.query("acme", "count calls/").await.unwrap()[0].text.clone();
    rows.push(vec![
        "64 at once, one hook".to_owned(),
        format!("{} provider calls, answers alike: {alike}", calls.split(' ').next_back().unwrap()),
        show(started.elapsed()),
    ]);
    const HOOKS: usize = 4_000;
    let started = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..64 {
        let service = Arc::clone(host.service());
        let events: Vec<HookEvent> =
            (0..HOOKS / 64).map(|n| event(format!("{task}-{n}"))).collect();
        tasks.spawn(async move {
            for event in events {
                Arc::clone(service.background()).deliver(&caller(), event).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    let took = started.elapsed();
    #[allow(clippy::cast_precision_loss)]
    let rate = (HOOKS / 64 * 64) as f64 / took.as_secs_f64();
    rows.push(vec![
        "64 at once, each its own hook".to_owned(),
        format!("{rate:.0} delivered a second"),
        show(took),
    ]);
    table("Hooks, durable and delivered", &["what", "came out", "took"], &rows);
}

/// Pages of 50 with each filter, from the newest on and from somewhere in the middle.
fn explorer() {
    let count: u64 =
        std::env::var("MEMHOST_OPERATIONS").map_or(10_000_000, |count| count.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let store = SledStore::open(directory.path(), SledOptions::default()).unwrap();
    let company = parse("acme");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let started = Instant::now();
    fill(&store, count).unwrap();
    println!("{count} operations written and indexed in {}", show(started.elapsed()));
    let at = |share: u64| {
        let ms = FIRST_MS + count * share;
        jiff::Timestamp::from_millisecond(i64::try_from(ms).unwrap()).unwrap()
    };
    let none = OperationFilter::default;
    let filters: Vec<(&str, OperationFilter)> = vec![
        ("none", none()),
        ("agent", OperationFilter { agent_id: Some("agent-7".to_owned()), ..none() }),
        (
            "issue (500 operations)",
            OperationFilter { issue_id: Some("issue-77".to_owned()), ..none() },
        ),
        ("project", OperationFilter { project_id: Some("project-3".to_owned()), ..none() }),
        ("run (16 operations)", OperationFilter { run_id: Some("run-12345".to_owned()), ..none() }),
        (
            "session (64 operations)",
            OperationFilter { session_key: Some("session-1234".to_owned()), ..none() },
        ),
        ("source kind", OperationFilter { source_kind: Some(SourceKind::Run), ..none() }),
        ("operation", OperationFilter { kind: Some(OperationKind::Capture), ..none() }),
        ("outcome (200 operations)", OperationFilter { outcome: Some(Outcome::Trapped), ..none() }),
        (
            "binding (200 operations)",
            OperationFilter { binding_key: Some(parse("rare")), ..none() },
        ),
        ("date", OperationFilter { since: Some(at(30)), until: Some(at(31)), ..none() }),
        (
            "agent and date",
            OperationFilter { agent_id: Some("agent-7".to_owned()), until: Some(at(40)), ..none() },
        ),
    ];
    let before = resident();
    let mut rows = Vec::new();
    for (name, filter) in &filters {
        let (mut all, mut found) = (Vec::new(), 0);
        for n in 0..200_u64 {
            // From the newest on, and from anywhere.
            let from = (n % 2 == 1).then(|| (n * 7_919 * 1_031) % count + 1);
            let started = Instant::now();
            let page = runtime.block_on(store.operations(&company, filter, from, 50)).unwrap();
            all.push(started.elapsed());
            found = found.max(page.operations.len());
        }
        let timings = Timings::new(all);
        let name = (*name).to_owned();
        rows.push(vec![
            name,
            found.to_string(),
            show(timings.p50()),
            show(timings.p99()),
            format!("{} MiB", resident()),
        ]);
    }
    let title =
        format!("Explorer: a page of 50 over {count} operations ({before} MiB resident before)");
    table(&title, &["filter", "found", "p50", "p99", "resident after"], &rows);
    let started = Instant::now();
    let days = (jiff::civil::date(2020, 1, 1), jiff::civil::date(2030, 1, 1));
    let sums = runtime.block_on(store.rollups(&company, days.0, days.1)).unwrap();
    println!("\nall sums of all days: {} rows in {}", sums.len(), show(started.elapsed()));
}

/// MiB of memory of this process.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4 / 1024
}
