//! Looking at a host and saying what to do.

use clap::Args;
use serde_json::Value;

use super::CliError;
use super::args::{HostArgs, WatchArgs};
use super::output::{table, text};
use super::page::{items, watched};

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
        let look = async || session.format.render(&session.host.get("/control/v1/doctor").await?, "items", rows);
        return watched(&args.watch, look).await;
    }
    let answer = session.host.get("/control/v1/doctor").await?;
    session.show(&answer, "items", rows)?;
    let checks = items(&answer, "items");
    match checks.iter().filter(|check| check["health"] == "error").count() {
        0 => session.say("all checks passed"),
        bad => Err(CliError::Failed(format!("{bad} of {} checks failed", checks.len()))),
    }
}

fn rows(answer: &Value) -> String {
    let row = |check: &Value| {
        vec![text(check, "/name"), text(check, "/health"), text(check, "/found"), text(check, "/advice")]
    };
    table(&["check", "status", "details", "advice"], items(answer, "items").iter().map(row).collect())
}
