//! `memhost plugin dev`: builds a provider after every change, loads it into a host of its own or a
//! running one, and shows its log.

mod build;
mod change;
mod swap;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use tokio::sync::mpsc;

use self::build::Build;
use self::change::Changes;
use self::swap::{Place, Swapped};
use crate::args::{CompanyArgs, NetworkArgs};
use crate::output::{is_plain, line};
use crate::session::Session;
use crate::texts::clip;
use crate::{CliError, Result, tail};
use memhost_types::{LogLine, Operation};

#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    /// Project directory.
    #[arg(default_value = ".")]
    project: PathBuf,
    /// Plugins directory of a running host that receives each build [default: run a host with its
    /// data in `target/memhost-dev` of the project, or in --data-dir].
    #[arg(long, value_name = "DIR", conflicts_with = "data_dir")]
    into: Option<PathBuf>,
    /// Build command, run by `sh` [default: cargo build --release --target wasm32-wasip2].
    #[arg(long, value_name = "COMMAND", requires = "artifact")]
    build_command: Option<String>,
    /// With --build-command: the component that it builds.
    #[arg(long, value_name = "FILE", requires = "build_command")]
    artifact: Option<PathBuf>,
    /// Provider configuration, a JSON object, for the host that this command runs.
    #[arg(long, default_value = "{}", value_name = "JSON")]
    config: String,
    #[command(flatten)]
    network: NetworkArgs,
    /// Listen address of the host that this command runs.
    #[arg(long, default_value = "127.0.0.1:7600", value_name = "ADDRESS")]
    listen: SocketAddr,
    #[command(flatten)]
    company: CompanyArgs,
}

pub(super) async fn run(args: DevArgs) -> Result<()> {
    let project = std::fs::canonicalize(&args.project).map_err(|error| {
        CliError::input("PROJECT", format!("{}: {error}", args.project.display()))
    })?;
    let build = Build::of(&project, args.build_command.as_deref(), args.artifact.as_deref())?;
    let network = args.network.network()?;
    let place = match &args.into {
        Some(plugins) => Place::of_running(plugins, &args.config, network, &args.company)?,
        None => Place::open(&project, &args.config, network, &args.company, args.listen).await?,
    };
    let mut changes = Changes::of(&project, build.artifact())?;
    let (told, mut events) = mpsc::channel(256);
    let (mut stopped, mut current) = (Box::pin(crate::signals::stop()), None);
    loop {
        // A change during the build starts the next build.
        let round = async {
            match build.run().await? {
                Some(component) => place.swap(&component).await,
                None => line("the build failed; the previous build keeps serving").map(|()| None),
            }
        };
        let swapped = tokio::select! {
            () = &mut stopped => return place.end().await,
            swapped = round => swapped?,
        };
        if let Some(swapped) = swapped {
            line(&swapped.said)?;
            if current.replace(swapped).is_none() {
                follow(place.session().await?, told.clone());
            }
        }
        loop {
            tokio::select! {
                () = &mut stopped => return place.end().await,
                () = changes.next() => break,
                Some(event) = events.recv() => show(&event?, &place, &mut current).await?,
            }
        }
    }
}

/// Follows the host in a thread of its own, which mostly blocks in a read.
fn follow(session: Session, told: mpsc::Sender<Result<tail::Event>>) {
    let path = if session.company.is_empty() {
        "/control/v1/stream".to_owned()
    } else {
        session.path("stream")
    };
    std::thread::spawn(move || tail::follow(&session.host, &path, &told));
}

/// Prints an operation of the provider with its log. Says once that the host went back to the
/// previous build.
async fn show(event: &tail::Event, place: &Place, current: &mut Option<Swapped>) -> Result<()> {
    if event.name != "operation" {
        return Ok(());
    }
    let operation: Operation = event.read()?;
    let Some(current) = current
        .as_mut()
        .filter(|current| operation.provider_key.as_ref() == Some(&current.provider))
    else {
        return Ok(());
    };
    line(&tail::operation(&operation, is_plain()))?;
    for LogLine { level, text } in &operation.log {
        line(&format!("              {level:<6} {}", clip(text, 1_000)))?;
    }
    if !current.is_rollback_reported
        && let Some(key) = &operation.binding_key
        && let Some(why) = place.rollback(key, current.digest).await?
    {
        line(&why)?;
        current.is_rollback_reported = true;
    }
    Ok(())
}
