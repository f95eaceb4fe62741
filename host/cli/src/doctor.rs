//! The health checks of a host, with advice.

use clap::Args;
use serde_json::Value;

use super::CliError;
use super::args::{HostArgs, WatchArgs};
use super::output::{table, text};
use super::page::{self, items};

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    #[command(flatten)]
    host: HostArgs,
    #[command(flatten)]
    watch: WatchArgs,
}

pub(super) async fn run(args: DoctorArgs) -> Result<(), CliError> {
    let session = args.host.open().await?;
    if args.watch.watch.is_some() {
        let fetch = async || session.host.get("/control/v1/doctor").await;
        return page::watch(&session, &args.watch, "items", fetch, checks).await;
    }
    let answer = session.host.get("/control/v1/doctor").await?;
    session.show(&answer, "items", checks)?;
    let all = items(&answer, "items");
    match all.iter().filter(|check| check["health"] == "error").count() {
        0 => session.say("no check failed"),
        failed => Err(CliError::Failed(format!("{failed} of {} checks failed", all.len()))),
    }
}

fn checks(answer: &Value) -> String {
    let row = |check: &Value| {
        ["/name", "/health", "/found", "/advice"].map(|field| text(check, field)).to_vec()
    };
    table(
        &["check", "status", "details", "advice"],
        items(answer, "items").iter().map(row).collect(),
    )
}
