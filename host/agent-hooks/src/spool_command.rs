//! `memhost agent-hooks spool`: shows what waits for a host, or delivers it.

use clap::Args;

use super::HooksError;
use super::output::{line, table};
use super::prompts;
use super::settings::{HookArgs, Settings};
use super::spool::{Delivered, Spool};
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
        return deliver_own(&state, &settings);
    }
    for warning in warnings {
        line(&format!("warning: {warning}"))?;
    }
    let spools = Spool::all(&state, &settings);
    if args.flush {
        for spool in &spools {
            line(&by_hand(spool, &state, &args.hook)?)?;
        }
        return match spools.iter().map(|spool| spool.waiting().0).sum() {
            0 => Ok(()),
            waiting => Err(HooksError::Waiting(waiting)),
        };
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

/// Delivers what hooks with these settings wrote, and what earlier tokens of the same agent left.
fn deliver_own(state: &State, settings: &Settings) -> Result<(), HooksError> {
    let own = Spool::open(state, settings)?;
    let token = settings.token.as_deref();
    let log = |delivered: Delivered| {
        if let Some(why) = delivered.stopped {
            state.log(&format!("events stay in the spool: {why}"));
        }
    };
    let earlier = || {
        for spool in own.earlier(state, settings) {
            spool.deliver_with_later(state, token).map(log)?;
        }
        Ok::<(), HooksError>(())
    };
    // The older events first, if it is known whose they are. The host may tell it with the first
    // event of this token's own.
    if own.principal().is_some() {
        earlier()?;
    }
    own.deliver(state, token).map(log)?;
    earlier()?;
    state.remove_old_tool_notes();
    prompts::remove_old(state);
    Ok(())
}

/// Delivers one spool with the token that its tool has now, and says what became of it. The
/// settings are those of its hooks, as far as the command line does not say otherwise: an
/// installation has the company in the tool's settings only.
fn by_hand(spool: &Spool, state: &State, args: &HookArgs) -> Result<String, HooksError> {
    let mut args = args.clone();
    let made_with = spool.made_with();
    args.url = args.url.or(made_with.url);
    args.config = args.config.or(made_with.config);
    args.company = args.company.or(made_with.company).or_else(|| spool.company());
    args.agent = args.agent.or(made_with.agent);
    args.context = args.context.or(made_with.context);
    args.ca = args.ca.or(made_with.ca);
    let (settings, _) = Settings::resolve(&args, spool.tool());
    let (waiting, tool) = (spool.waiting().0, spool.tool());
    if !spool.is_of(&settings) && waiting > 0 {
        return Ok(format!(
            "0 delivered, {waiting} waiting; they were made with other settings of `{tool}` (host, \
             company, agent): deliver them with those"
        ));
    }
    let token = settings.token.as_deref();
    let (spool, own) = (spool.with(&settings), Spool::of(state, &settings));
    let result = if own.directory() == spool.directory() {
        spool.deliver(state, token)?
    } else if own.is_of_another(&spool) == Some(true) {
        return Ok(format!(
            "0 delivered, {waiting} waiting; they are of {}, and `{tool}` has the token of {} now: \
             deliver them with MEMHOST_TOKEN",
            spool.principal().unwrap_or_default(),
            own.principal().unwrap_or_default()
        ));
    } else {
        spool.deliver_with_later(state, token)?
    };
    let locked = result.is_locked.then(|| "another process is delivering".to_owned());
    let why = result.stopped.or(locked).map(|why| format!("; {why}")).unwrap_or_default();
    let (delivered, refused, waiting) = (result.delivered, result.refused, spool.waiting().0);
    Ok(format!("{delivered} delivered, {refused} refused, {waiting} waiting{why}"))
}
