//! A host under load that expects to be killed. Each line on standard output is an acknowledgement:
//! what is in it must be there after a restart.
//!
//! `crash-worker DATA_DIR PLUGINS_DIR ROUND`: until it is killed, eight tasks write, read and
//! forget.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use memhost_core::{Service, ServiceError, ServiceOptions};
use memhost_tests::{caller, capture, forget, query, upsert};

/// One company for each provider that keeps something.
const COMPANIES: [&str; 2] = ["files", "storage"];

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().context("usage: crash-worker DATA_DIR PLUGINS_DIR ROUND");
    let mut options = ServiceOptions::new(PathBuf::from(next()?));
    options.compiled_dir = Some(memhost_tests::compiled_dir());
    options.database = std::env::var(memhost_tests::DATABASE).ok();
    options.plugins_dir = Some(PathBuf::from(next()?));
    let round = next()?;
    let service = Service::open(options).await?;
    println!("ready");
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..8 {
        let (service, round) = (Arc::clone(&service), round.clone());
        tasks.spawn(async move {
            for n in 0.. {
                step(&service, COMPANIES[task % 2], &format!("round{round} task{task} step{n}"))
                    .await?;
            }
            Ok::<(), ServiceError>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

/// Writes in two ways, reads, and forgets one of the two records.
async fn step(service: &Service, company: &str, name: &str) -> Result<(), ServiceError> {
    let text = format!("fact of {name}");
    let written = service.operations().upsert(&caller(), upsert(company, &[&text])).await?;
    acknowledge(&[
        "wrote",
        company,
        &written.operation_id.to_string(),
        id(&written.records),
        &text,
    ]);
    let text = format!("event of {name}");
    let captured = service.operations().capture(&caller(), capture(company, &text)).await?;
    acknowledge(&[
        "wrote",
        company,
        &captured.operation_id.to_string(),
        id(&captured.records),
        &text,
    ]);
    let bundle = service.operations().query(&caller(), query(company, name)).await?;
    acknowledge(&["read", company, &bundle.operation_id.to_string(), "-", "-"]);
    // From here on until the answer, the record may be there or not.
    acknowledge(&["forgetting", company, "-", id(&written.records), "-"]);
    let forgotten =
        service.operations().forget(&caller(), forget(company, &written.records)).await?;
    acknowledge(&[
        "forgot",
        company,
        &forgotten.operation_id.to_string(),
        id(&written.records),
        "-",
    ]);
    Ok(())
}

fn id(records: &[memhost_types::RecordHandle]) -> &str {
    records.first().map_or("-", |handle| handle.provider_record_id.as_str())
}

/// One `write` for the whole line: a kill leaves whole lines only, as far as the parent is
/// concerned.
fn acknowledge(parts: &[&str]) {
    let line = format!("{}\n", parts.join("\t"));
    let _ = std::io::stdout().lock().write_all(line.as_bytes());
}
