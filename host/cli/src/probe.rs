//! `memhost probe`: whether a host answers, for what watches a service and has no program of its
//! own, such as a container without a shell.

use std::time::{Duration, Instant};

use clap::Args;

use super::args::HostArgs;
use super::connection::Connection;
use super::output::line;
use super::{Backend, CliError, Result};
use memhost_server::Request;

/// How long it waits before it asks again.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, Args)]
pub(super) struct ProbeArgs {
    /// Succeed only when the plugins are admitted and operations are answered, too.
    #[arg(long)]
    ready: bool,
    /// Ask again for so many seconds before it fails.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    wait: u64,
    #[command(flatten)]
    host: HostArgs,
}

/// Asks `/healthz` or `/readyz`. Needs no token.
pub(super) async fn run(args: ProbeArgs) -> Result<()> {
    let connection = Connection::of(&args.host)?;
    let host = Backend::open(&args.host, &connection).await?;
    let path = if args.ready { "/readyz" } else { "/healthz" };
    let end = Instant::now() + Duration::from_secs(args.wait);
    loop {
        match ask(&host, path).await {
            Ok(()) => return line(&format!("{} answers {path}", connection.url)),
            Err(error) if Instant::now() >= end => return Err(error),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn ask(host: &Backend, path: &str) -> Result<()> {
    let request = Request { path: path.to_owned(), ..Request::default() };
    match host.exchange(request).await? {
        (200..300, _) => Ok(()),
        (status, body) => Err(CliError::problem(status, &body)),
    }
}
