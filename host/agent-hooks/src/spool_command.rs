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
    /// Print nothing, and deliver only what is of this tool and these settings
    #[arg(long, requires = "flush", hide = true)]
    quiet: bool,
    /// The tool whose settings count
    #[arg(long, value_name = "NAME", default_value = "", hide = true)]
    tool: String,
    #[command(flatten)]
    hook: HookArgs,
}

/// Runs the command.
pub(super) fn run(args: &SpoolArgs) -> Result<(), HooksError> {
    let state = State::open();
    let (settings, warnings) = Settings::resolve(&args.hook, &args.tool);
    if args.quiet {
        let delivered =
            Spool::open(&state, &settings)?.deliver(&state, settings.token.as_deref())?;
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
            // Each with the token of its tool. By hand, also what an earlier token of the same
            // settings left: it was replaced. A hook sends only what its own token made.
            let (own, _) = Settings::resolve(&args.hook, spool.tool());
            if !spool.is_of(&own) && spool.waiting().0 > 0 {
                let (waiting, tool) = (spool.waiting().0, spool.tool());
                line(&format!(
                    "0 delivered, {waiting} waiting; they were made with other settings of \
                     `{tool}` (host, company, agent): \
                     deliver them with those"
                ))?;
                continue;
            }
            let result = spool.deliver(&state, own.token.as_deref())?;
            let locked = result.is_locked.then(|| "another process is delivering".to_owned());
            let why = result.stopped.or(locked).map(|why| format!("; {why}")).unwrap_or_default();
            let (delivered, refused, waiting) =
                (result.delivered, result.refused, spool.waiting().0);
            line(&format!("{delivered} delivered, {refused} refused, {waiting} waiting{why}"))?;
        }
        return Ok(());
    }
    let rows = spools.iter().map(|spool| {
        let (files, bytes) = spool.waiting();
        let counted = |what| spool.counted(what).to_string();
        let directory = spool.directory().display().to_string();
        vec![
            files.to_string(),
            bytes.to_string(),
            counted("dropped"),
            counted("refused"),
            directory,
        ]
    });
    line(&table(&["waiting", "bytes", "dropped", "refused", "directory"], rows.collect()))?;
    if state.log_path().exists() {
        line(&format!("log of problems: {}", state.log_path().display()))?;
    }
    Ok(())
}
