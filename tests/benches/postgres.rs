//! The store on PostgreSQL beside a bare client that writes the same records in the same batches
//! into a table with the same indexes, and a query of a host beside the client's commit of one row.
//! Both also without prepared statements, and by way of PgBouncer in transaction mode.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on has failed")]

// The program's allocator comes with it.
use memhost_cli as _;

use std::sync::Arc;
use std::time::{Duration, Instant};

use memhost_core::Audit;
use memhost_postgres::{PostgresOptions, PostgresStore, testing};
use memhost_store::{OperationLog, encode, next_sequence};
use memhost_tests::measure::{Timings, ratio, show, table};
use memhost_tests::{TestHost, caller, figures, operations::example, query};
use memhost_types::{BindingLimits, OperationId};
use tokio_postgres::Client;

/// Callers that record operations at the same time, each waiting for its own.
const CALLERS: usize = 64;
const TIME: Duration = Duration::from_secs(6);

/// Operations that the store has recorded, and in how many batches.
async fn store(address: &str) -> (u64, u64) {
    let options = PostgresOptions { address: address.to_owned(), ..PostgresOptions::default() };
    let store = Arc::new(PostgresStore::open(options).await.unwrap());
    let until = Instant::now() + TIME;
    let mut callers = Vec::new();
    for number in 0..CALLERS {
        let store = Arc::clone(&store);
        callers.push(tokio::spawn(async move {
            let company = format!("company-{}", number % 8).parse().unwrap();
            let mut recorded = 0;
            while Instant::now() < until {
                let number = next_sequence(&*store, &company).await.unwrap();
                let made = Arc::new(example(&company, number));
                store.write_operation(made, Vec::new()).await.unwrap();
                recorded += 1;
            }
            recorded
        }));
    }
    let mut recorded = 0;
    for caller in callers {
        recorded += caller.await.unwrap();
    }
    let client = testing::client(address).await;
    let batches = client.query_one("SELECT sum(batch)::bigint FROM lanes", &[]).await.unwrap();
    (recorded, u64::try_from(batches.get::<_, i64>(0)).unwrap())
}

const BARE: &str = "INSERT INTO operations (company, number, id, home_token, started_us, kind, \
    outcome, count, agent, project, session, binding_key, provider, source, keeps_text, issues, \
    runs, records, record) \
    SELECT company, number, id, 1, number, 'query', 'succeeded', 1, 'agent-' || number % 50, \
    'project-' || number % 20, 'session-' || number / 64, 'default', 'local-markdown', 'run', \
    false, ARRAY['issue-' || number % 20000], ARRAY['run-' || number / 16], '{}', record \
    FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::bytea[]) \
    AS w(company, number, id, record)";

async fn write(client: &Client, company: i64, numbers: std::ops::Range<u64>) {
    let name = format!("bare-{company}").parse().unwrap();
    let (mut companies, mut all, mut ids, mut records) = (vec![], vec![], vec![], vec![]);
    for number in numbers {
        companies.push(company);
        all.push(i64::try_from(number).unwrap());
        ids.push(OperationId::new(number, number, 7).uuid());
        records.push(encode("operation", &example(&name, number)).unwrap());
    }
    let statement = client.prepare(BARE).await.unwrap();
    client.execute(&statement, &[&companies, &all, &ids, &records]).await.unwrap();
}

/// The same with connections of its own, as many as the store has lanes.
async fn bare(address: &str, batch: u64) -> u64 {
    let until = Instant::now() + TIME;
    let mut writers = Vec::new();
    for lane in 0..4_i64 {
        let client = testing::client(address).await;
        writers.push(tokio::spawn(async move {
            let mut written = 0;
            while Instant::now() < until {
                write(&client, 1_000 + lane, written..written + batch).await;
                written += batch;
            }
            written
        }));
    }
    let mut written = 0;
    for writer in writers {
        written += writer.await.unwrap();
    }
    written
}

async fn one_row(address: &str) -> Timings {
    let client = testing::client(address).await;
    let mut all = Vec::new();
    for number in 0..2_000 {
        let started = Instant::now();
        write(&client, 2_000, number..number + 1).await;
        all.push(started.elapsed());
    }
    Timings::new(all)
}

async fn queries(address: &str) -> Timings {
    let host = TestHost::with(&["echo"], |options| {
        (options.database, options.audit) = (Some(address.to_owned()), Audit::Durable);
    });
    let host = host.await.unwrap();
    host.bind("acme", "echo", BindingLimits::default()).await.unwrap();
    let mut all = Vec::new();
    for _ in 0..2_000 {
        let started = Instant::now();
        host.service().operations().query(&caller(), query("acme", "hello")).await.unwrap();
        all.push(started.elapsed());
    }
    Timings::new(all)
}

fn unprepared(address: &str) -> Option<String> {
    Some(format!("{address}?{}", testing::UNPREPARED))
}

/// Changes the address of a database. None where a tool is missing.
type Way = fn(&str) -> Option<String>;

/// What it costs to prepare no statements, and to go through a pooler that has as many sessions as
/// a store has connections for writing.
async fn ways() {
    let ways: [(&str, Way); 3] = [
        ("prepared", |address| Some(address.to_owned())),
        ("not prepared", unprepared),
        ("not prepared, by PgBouncer", |address| unprepared(&testing::by_pooler(address)?)),
    ];
    let mut rows = Vec::new();
    for (name, way) in ways {
        let (Some(one), Some(other)) = (testing::database().await, testing::database().await)
        else {
            return;
        };
        let (Some(one), Some(other)) = (way(&one), way(&other)) else { continue };
        let (recorded, _) = store(&one).await;
        let asked = queries(&other).await;
        let a_second = (recorded / TIME.as_secs()).to_string();
        rows.push(vec![name.to_owned(), a_second, show(asked.p50()), show(asked.p99())]);
    }
    let heads = ["", "operations recorded a second", "p50 of a query", "p99"];
    table("Ways to a database", &heads, &rows);
}

#[tokio::main]
async fn main() {
    let Some(address) = testing::database().await else { return };
    let (recorded, batches) = store(&address).await;
    let batch = recorded.div_ceil(batches.max(1)).max(1);
    let floor = bare(&address, batch).await;
    let a_second = |count: u64| count / TIME.as_secs();
    println!(
        "{} operations a second in batches of {batch}; the bare client writes {}",
        a_second(recorded),
        a_second(floor)
    );
    #[allow(clippy::cast_precision_loss, reason = "a ratio")]
    let share = recorded as f64 / floor as f64;
    println!("{share:.2} of the bare client");
    figures::note("postgres: bare writes a recorded operation", 1.0 / share);
    let row = one_row(&address).await;
    let Some(address) = testing::database().await else { return };
    let asked = queries(&address).await;
    table(
        "A query of a host on PostgreSQL",
        &["", "p50", "p99", "of the commit"],
        &[
            vec!["one row".to_owned(), show(row.p50()), show(row.p99()), String::new()],
            vec![
                "a query".to_owned(),
                show(asked.p50()),
                show(asked.p99()),
                ratio(asked.p50(), row.p50()),
            ],
        ],
    );
    figures::cost("postgres: a query, of the bare client's commit", asked.p50(), row.p50());
    ways().await;
}
