//! `memhost agent-hooks spool`: shows what waits for a host, or delivers it.

use clap::Args;

use super::HooksError;
use super::output::{line, table};
use super::settings::{HookArgs, Settings};
use super::spool::Spool;
use super::state::State;

/// The arguments of `memhost agent-hooks spool`.
#[derive(Debug, Args)]
pub(super) struct SpoolArgs {
    /// Deliver the events that wait now
    #[arg(long)]
    flush: bool,
    /// Print nothing, and deliver only to the host, company and agent of these settings
    #[arg(long, requires = "flush", hide = true)]
    quiet: bool,
    #[command(flatten)]
    hook: HookArgs,
}

/// Runs the command.
pub(super) fn run(args: &SpoolArgs) -> Result<(), HooksError> {
    let state = State::open();
    let (settings, warnings) = Settings::resolve(&args.hook);
    let token = settings.token.as_deref();
    if args.quiet {
        let delivered = Spool::open(&state, &settings)?.deliver(&state, token)?;
        state.remove_old_tool_notes();
        if let Some(why) = delivered.stopped {
            state.log(&format!("events stay in the spool: {why}"));
        }
        return Ok(());
    }
    for warning in warnings {
        line(&format!("warning: {warning}"))?;
    }
    let spools = Spool::all(&state, &settings);
    if args.flush {
        for spool in &spools {
            let result = spool.deliver(&state, token)?;
            let locked = result.is_locked.then(|| "another process is delivering".to_owned());
            let why = result.stopped.or(locked).map(|why| format!("; {why}")).unwrap_or_default();
            let (delivered, refused, waiting) = (result.delivered, result.refused, spool.waiting().0);
            line(&format!("{delivered} delivered, {refused} refused, {waiting} waiting{why}"))?;
        }
        return Ok(());
    }
    let rows = spools.iter().map(|spool| {
        let (files, bytes) = spool.waiting();
        let counted = |what| spool.counted(what).to_string();
        let directory = spool.directory().display().to_string();
        vec![files.to_string(), bytes.to_string(), counted("dropped"), counted("refused"), directory]
    });
    line(&table(&["waiting", "bytes", "dropped", "refused", "directory"], rows.collect()))?;
    if state.log_path().exists() {
        line(&format!("log of problems: {}", state.log_path().display()))?;
    }
    Ok(())
}
