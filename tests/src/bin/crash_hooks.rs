//! A host under hooks and jobs that expects to be killed. Each line on standard output is an
//! acknowledgement: the event in it was accepted.
//!
//! `crash-hooks DATA_DIR PLUGINS_DIR ROUND`: until it is killed, four tasks deliver events of all
//! kinds.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use memhost_core::{Service, ServiceOptions};
use memhost_tests::caller;
use memhost_types::HookEvent;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().context("usage: crash-hooks DATA_DIR PLUGINS_DIR ROUND");
    let mut options = ServiceOptions::new(PathBuf::from(next()?));
    options.compiled_dir = Some(memhost_tests::compiled_dir());
    options.database = std::env::var(memhost_tests::DATABASE).ok();
    options.plugins_dir = Some(PathBuf::from(next()?));
    options.retry.first = Duration::from_millis(5);
    options.retry.longest = Duration::from_millis(20);
    options.retry.attempts = 1_000;
    let round = next()?;
    let service = Service::open(options).await?;
    println!("ready");
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..4 {
        let (service, round) = (Arc::clone(&service), round.clone());
        tasks.spawn(async move {
            for n in 0.. {
                let kind = ["job makes a record of", "flaky 1", "job slices 2", "a fact"][n % 4];
                let hook_id = format!("round{round}-task{task}-{n}");
                let event: HookEvent = serde_json::from_value(json!({
                    "hookKind": "post_run_capture",
                    "hookId": hook_id,
                    "triggeredAt": "2026-11-20T10:00:00Z",
                    "scope": {"companyId": "acme", "runId": hook_id},
                    "source": {"kind": "run", "companyId": "acme", "runId": hook_id},
                    "payload": {"text": format!("{kind} {hook_id}")},
                    "waitMs": if n % 8 == 0 { 20 } else { 0 },
                }))?;
                Arc::clone(service.background()).deliver(&caller(), event).await?;
                // One `write` for the whole line: a kill leaves whole lines only.
                let _ = std::io::stdout().lock().write_all(format!("{hook_id}\n").as_bytes());
            }
            Ok::<(), anyhow::Error>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}
