//! Filters of operations over a large log, half of which is one company's: which pages of the
//! database they touch. `MEMHOST_FILTER_ROWS` says how many operations; ten million take some
//! minutes to make.

use std::time::Instant;

use memhost_store::OperationLog;
use memhost_store::suite::{company, numbered};
use memhost_types::{BindingId, OperationFilter, OperationKind, Outcome};
use tokio_postgres::Client;
use uuid::Uuid;

use crate::server;

/// Operations without `MEMHOST_FILTER_ROWS`.
const ROWS: i64 = 60_000;
/// The most pages that one question may touch, where it reads no index of arrays.
const MOST_PAGES: i64 = 200;
const PAGE: usize = 50;
/// When the first one began, in microseconds, and the time between two.
const BEGIN_US: i64 = 1_700_000_000_000_000;
const STEP_US: i64 = 50_000;

/// The record of the i-th operation: JSON of a real one with its facets in place.
fn record() -> String {
    let mut operation = numbered("big", Some("AGENT"), OperationKind::Query, Outcome::Succeeded, 1);
    operation.scope.issue_id = Some("ISSUE".to_owned());
    operation.scope.run_id = Some("RUN".to_owned());
    operation.scope.session_key = Some("SESSION".to_owned());
    operation.scope.project_id = Some("PROJECT".to_owned());
    operation.binding_id = Some(BindingId(Uuid::max()));
    let json = serde_json::to_string(&operation).unwrap();
    let mut sql = format!("$json${json}$json$");
    let started = serde_json::to_string(&operation.started_at).unwrap();
    let parts = [
        ("AGENT", "agent"),
        ("ISSUE", "issue"),
        ("RUN", "run"),
        ("SESSION", "session"),
        ("PROJECT", "project"),
        (&Uuid::max().to_string(), "binding::text"),
        (r#""kind":"query""#, r#"'"kind":"' || kind || '"'"#),
        (r#""outcome":"succeeded""#, r#"'"outcome":"' || outcome || '"'"#),
        (&started, "to_json(to_timestamp(us / 1e6))::text"),
    ];
    for (from, to) in parts {
        assert!(json.contains(from), "{from} in {json}");
        sql = format!("replace({sql}, '{from}', {to})");
    }
    // What else an operation says makes it about as long as this.
    format!("decode('01', 'hex') || convert_to({sql} || repeat(' ', 200), 'UTF8')")
}

/// Makes the operations: one half of `big`, the other of a thousand others.
async fn fill(client: &Client, rows: i64) {
    let names = "INSERT INTO companies (name) SELECT 'c' || i FROM generate_series(1, 1000) i";
    client.batch_execute(names).await.unwrap();
    let indexes = client
        .query(
            "SELECT indexname, indexdef FROM pg_indexes \
             WHERE tablename = 'operations' AND indexname <> 'operations_pkey'",
            &[],
        )
        .await
        .unwrap();
    // Much quicker at the end.
    for index in &indexes {
        let name: &str = index.get(0);
        client.batch_execute(&format!("DROP INDEX {name}")).await.unwrap();
    }
    let sql = format!(
        "INSERT INTO operations (company, number, id, home_token, started_us, kind, outcome, \
           count, agent, project, session, binding_key, binding_id, keeps_text, issues, runs, \
           records, record) \
         SELECT company, number, gen_random_uuid(), 1, us, kind, outcome, 1, agent, project, \
           session, 'default', binding, false, ARRAY[issue], ARRAY[run], '{{}}', {} \
         FROM (SELECT i, \
           CASE WHEN i % 2 = 0 THEN (SELECT id FROM companies WHERE name = 'big') \
             ELSE (SELECT min(id) FROM companies WHERE name LIKE 'c%') + i / 2 % 1000 \
             END AS company, \
           i AS number, {BEGIN_US} + i * {STEP_US} AS us, \
           CASE WHEN i % 50000 = 2 THEN 'forget' WHEN i % 4 = 0 THEN 'capture' \
             ELSE 'query' END AS kind, \
           CASE WHEN i % 10000 = 4 THEN 'failed' ELSE 'succeeded' END AS outcome, \
           CASE WHEN i % 20000 = 6 THEN 'rare' ELSE 'agent-' || i / 2 % 20 END AS agent, \
           'project-' || i / 2 % 3 AS project, 'session-' || i / 200 AS session, \
           ('00000000-0000-0000-0000-00000000000' || i / 2 % 2)::uuid AS binding, \
           'issue-' || i / 100 AS issue, 'run-' || i / 20 AS run \
         FROM generate_series($1::bigint, $2::bigint) i) AS made",
        record()
    );
    const AT_ONCE: i64 = 500_000;
    for first in (1..=rows).step_by(AT_ONCE as usize) {
        let last = (first + AT_ONCE - 1).min(rows);
        client.execute(&sql, &[&first, &last]).await.unwrap();
    }
    for index in &indexes {
        let definition: &str = index.get(1);
        client.batch_execute(definition).await.unwrap();
    }
    client.batch_execute("VACUUM ANALYZE operations").await.unwrap();
}

#[test]
fn a_filter_reads_few_pages_and_sorts_nothing_in_a_large_company() {
    let rows = std::env::var("MEMHOST_FILTER_ROWS").map_or(ROWS, |rows| rows.parse().unwrap());
    server::runtime().block_on(async {
        let Some(address) = server::database().await else { return };
        let store = server::open(&address, 0).await;
        store.reserve_sequences(&company("big")).await.unwrap();
        drop(store);
        let client = server::client(&address).await;
        fill(&client, rows).await;
        // From here on each statement's plan is in the server's log.
        let settings = [
            "session_preload_libraries = auto_explain",
            "auto_explain.log_min_duration = 0",
            "auto_explain.log_analyze = on",
            "auto_explain.log_buffers = on",
            "auto_explain.log_timing = off",
            "auto_explain.log_format = json",
        ];
        let name = client.query_one("SELECT current_database()", &[]).await.unwrap();
        let name: &str = name.get(0);
        for setting in settings {
            client.batch_execute(&format!("ALTER DATABASE {name} SET {setting}")).await.unwrap();
        }
        // A session of a pooler goes on with the settings that it began with.
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
        client.batch_execute(end).await.unwrap();
        let store = server::open(&address, 0).await;
        let big = company("big");
        let middle = BEGIN_US + rows / 2 * STEP_US;
        let at = |us: i64| Some(jiff::Timestamp::from_microsecond(us).unwrap());
        let all = OperationFilter::default;
        let text = |text: &str| Some(text.to_owned());
        let filters = [
            ("all", true, all()),
            ("agent", true, OperationFilter { agent_id: text("agent-7"), ..all() }),
            ("rare agent", true, OperationFilter { agent_id: text("rare"), ..all() }),
            ("rare kind", true, OperationFilter { kind: Some(OperationKind::Forget), ..all() }),
            ("kind", true, OperationFilter { kind: Some(OperationKind::Capture), ..all() }),
            ("failures", true, OperationFilter { outcome: Some(Outcome::Failed), ..all() }),
            (
                "failures of an agent",
                true,
                OperationFilter {
                    agent_id: text("agent-2"),
                    outcome: Some(Outcome::Failed),
                    ..all()
                },
            ),
            (
                "agent and binding",
                true,
                OperationFilter {
                    agent_id: text("agent-2"),
                    binding_id: Some(BindingId(Uuid::from_u128(0))),
                    ..all()
                },
            ),
            (
                "binding",
                true,
                OperationFilter { binding_id: Some(BindingId(Uuid::from_u128(1))), ..all() },
            ),
            ("project", true, OperationFilter { project_id: text("project-1"), ..all() }),
            ("unknown project", true, OperationFilter { project_id: text("none"), ..all() }),
            ("session", true, OperationFilter { session_key: text("session-7"), ..all() }),
            ("until the middle", true, OperationFilter { until: at(middle), ..all() }),
            (
                "an hour of an agent",
                true,
                OperationFilter {
                    agent_id: text("agent-5"),
                    since: at(middle - 3_600_000_000),
                    until: at(middle),
                    ..all()
                },
            ),
            ("issue", false, OperationFilter { issue_id: text("issue-3"), ..all() }),
            ("run", false, OperationFilter { run_id: text("run-9"), ..all() }),
        ];
        println!("{:24} {:>5} {:>6} {:>9} {:>9}", "filter", "found", "pages", "p50 ms", "p99 ms");
        for (name, is_in_order, filter) in filters {
            let ask = || store.operations(&big, &filter, None, PAGE);
            let before = server::log_len();
            let page = ask().await.unwrap();
            let plans = plans(&server::log_from(before));
            let mut pages = 0;
            for plan in plans.iter().filter(|plan| plan.to_string().contains("operations")) {
                let of = &plan["Plan"];
                let touched = ["Shared Hit Blocks", "Shared Read Blocks"];
                let touched: i64 = touched.iter().filter_map(|name| of[name].as_i64()).sum();
                pages = pages.max(touched);
                if is_in_order {
                    let plan = plan.to_string();
                    let sorts = plan.contains(r#""Node Type":"Sort""#);
                    assert!(!sorts && !plan.contains("Bitmap"), "{name}: {plan}");
                    assert!(touched <= MOST_PAGES, "{name} touches {touched} pages: {plan}");
                }
            }
            assert!(pages > 0, "{name}: no plan is in the log");
            let index = format!("operations_{name}s");
            let reads_it = plans.iter().any(|plan| plan.to_string().contains(&index));
            assert!(is_in_order || reads_it, "{name}: the index of arrays is not read: {plans:?}");
            let mut times = Vec::new();
            for _ in 0..100 {
                let begin = Instant::now();
                ask().await.unwrap();
                times.push(begin.elapsed().as_secs_f64() * 1e3);
            }
            times.sort_by(f64::total_cmp);
            let found = page.operations.len();
            let more = if page.next_before.is_some() { "+" } else { " " };
            println!("{name:24} {found:>4}{more} {pages:>6} {:>9.2} {:>9.2}", times[50], times[98]);
        }
    });
}

/// The plans of a log, which has each one as JSON behind a line that names its duration.
fn plans(log: &str) -> Vec<serde_json::Value> {
    let parts = log.split("plan:\n").skip(1);
    let json = |part: &str| {
        serde_json::Deserializer::from_str(part).into_iter().next().and_then(Result::ok)
    };
    parts.filter_map(json).collect()
}
