//! `memhost probe`: whether a host answers, for what watches a service and has no program of its
//! own, such as a container without a shell.

use clap::Args;

use super::args::HostArgs;
use super::connection::Connection;
use super::output::line;
use super::{Backend, CliError, Result};
use memhost_server::Request;

#[derive(Debug, Args)]
pub(super) struct ProbeArgs {
    /// Succeed only when the plugins are admitted and operations are answered, too.
    #[arg(long)]
    ready: bool,
    #[command(flatten)]
    host: HostArgs,
}

/// Asks `/healthz` or `/readyz`. Needs no token.
pub(super) async fn run(args: ProbeArgs) -> Result<()> {
    let connection = Connection::of(&args.host)?;
    let host = Backend::open(&args.host, &connection).await?;
    let path = if args.ready { "/readyz" } else { "/healthz" };
    let request = Request { path: path.to_owned(), ..Request::default() };
    match host.exchange(request).await? {
        (200..300, _) => line(&format!("{} answers {path}", connection.url)),
        (status, body) => Err(CliError::problem(status, &body)),
    }
}
