//! Looking at a host and saying what to do.

use clap::Args;
use serde_json::Value;

use super::output::{line, table, text};
use super::{Backend, CliError, HostArgs, output};

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    #[command(flatten)]
    host: HostArgs,
}

pub(super) async fn run(args: DoctorArgs) -> Result<(), CliError> {
    let answer = Backend::open(&args.host).await?.get("/control/v1/doctor").await?;
    let checks = answer["items"].as_array().cloned().unwrap_or_default();
    if args.host.json {
        output::json(&answer)?;
    } else {
        let row = |check: &Value| {
            vec![text(check, "/name"), text(check, "/health"), text(check, "/found"), text(check, "/advice")]
        };
        table(&["what", "how it is", "found", "what to do"], checks.iter().map(row).collect())?;
    }
    let bad = checks.iter().filter(|check| check["health"] == "bad").count();
    match bad {
        0 if args.host.json => Ok(()),
        0 => line("nothing keeps this host from its work"),
        _ => Err(CliError::Failed(format!("{bad} of {} checks failed", checks.len()))),
    }
}
