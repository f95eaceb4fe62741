//! `memhost agent-hooks`: what the hooks of Claude Code and of Codex run. It tells the host of sessions, tools and what was
//! said, and prints what memory knows in the form that the tool puts into the session. It never fails for its caller.

mod entries;
mod error;
mod hook;
mod http;
mod install;
mod output;
mod payload;
mod project;
mod recall;
mod settings;
mod signal;
mod splice;
mod spool;
mod state;
mod transcript;
mod unix_socket;

use std::ffi::OsString;

use clap::{Args, Parser, Subcommand};

pub use error::HooksError;
use install::{InstallArgs, PlaceArgs};
use output::{line, table};
use payload::Tool;
use settings::{HookArgs, Settings};
use spool::Spool;
use state::State;

/// `memhost agent-hooks …`.
#[derive(Debug, Subcommand)]
pub enum AgentHooksCommand {
    /// For the hooks of Claude Code: reads what happened on standard input.
    #[command(args_conflicts_with_subcommands = true)]
    Claude(ToolArgs),
    /// For the hooks of Codex: reads what happened on standard input.
    #[command(args_conflicts_with_subcommands = true)]
    Codex(ToolArgs),
    /// Show what hosts have not been told yet.
    Spool(SpoolArgs),
}

/// What a hook of one tool, and whoever installs it, may say.
#[derive(Debug, Args)]
pub struct ToolArgs {
    #[command(subcommand)]
    action: Option<ToolAction>,
    #[command(flatten)]
    hook: HookArgs,
}

#[derive(Debug, Subcommand)]
enum ToolAction {
    /// Write the hooks into the tool's settings.
    Install(InstallArgs),
    /// Take them out again; everything else in the settings stays as it is.
    #[command(visible_alias = "undo")]
    Uninstall(PlaceArgs),
    /// For the `notify` program of Codex, which gets its JSON as the last argument.
    Notify(NotifyArgs),
}

#[derive(Debug, Args)]
struct NotifyArgs {
    #[command(flatten)]
    hook: HookArgs,
    /// What happened.
    json: String,
}

/// `memhost agent-hooks spool`.
#[derive(Debug, Args)]
pub struct SpoolArgs {
    /// Deliver what waits now.
    #[arg(long)]
    flush: bool,
    /// Print nothing, and deliver only what these settings are for.
    #[arg(long, requires = "flush", hide = true)]
    quiet: bool,
    #[command(flatten)]
    hook: HookArgs,
}

/// A call of a hook, without the hundred other commands that would have to be described before it is understood.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Call {
    #[command(flatten)]
    hook: HookArgs,
    /// Codex adds its JSON behind everything else.
    json: Option<String>,
}

/// Whether the command line is that of a tool's hook; then all is done when this returns. What is wrong with it goes to
/// the adapter's log: the exit code with which other commands refuse a command line would stop the tool.
pub fn is_hook(arguments: &[OsString]) -> bool {
    let word = |index: usize| arguments.get(index).and_then(|word| word.to_str());
    let tool = match (word(1), word(2)) {
        (Some("agent-hooks"), Some("claude")) => Tool::Claude,
        (Some("agent-hooks"), Some("codex")) => Tool::Codex,
        _ => return false,
    };
    let is_notify = word(3) == Some("notify");
    if matches!(word(3), Some("install" | "uninstall" | "undo" | "help" | "-h" | "--help" | "-V" | "--version")) {
        return false;
    }
    let rest = arguments.iter().skip(if is_notify { 4 } else { 3 });
    if is_notify && rest.clone().any(|word| word == "--help" || word == "-h") {
        return false;
    }
    match Call::try_parse_from(rest) {
        Ok(call) if is_notify => hook::run(tool, &call.hook, Some(call.json.unwrap_or_default())),
        Ok(call) => hook::run(tool, &call.hook, None),
        Err(error) => {
            let said = error.to_string();
            State::open()
                .log(&format!("the hook's command line will not do: {}", said.lines().next().unwrap_or_default()));
        }
    }
    true
}

/// Everything that a person does with it.
///
/// # Errors
/// Where an argument, a file or the output will not do.
pub fn run(command: AgentHooksCommand) -> Result<(), HooksError> {
    let (tool, args) = match command {
        AgentHooksCommand::Claude(args) => (Tool::Claude, args),
        AgentHooksCommand::Codex(args) => (Tool::Codex, args),
        AgentHooksCommand::Spool(args) => return spool(&args),
    };
    match args.action {
        Some(ToolAction::Install(args)) => install::install(tool, &args),
        Some(ToolAction::Uninstall(args)) => install::uninstall(tool, &args),
        Some(ToolAction::Notify(args)) => {
            hook::run(tool, &args.hook, Some(args.json));
            Ok(())
        }
        None => {
            hook::run(tool, &args.hook, None);
            Ok(())
        }
    }
}

fn spool(args: &SpoolArgs) -> Result<(), HooksError> {
    let state = State::open();
    let (settings, complaints) = Settings::of(&args.hook);
    let token = settings.token.as_deref();
    if args.quiet {
        let delivered = Spool::open(&state, &settings)?.deliver(&state, token)?;
        state.sweep();
        if let Some(why) = delivered.stopped {
            state.log(&format!("events wait: {why}"));
        }
        return Ok(());
    }
    for complaint in complaints {
        line(&format!("note: {complaint}"))?;
    }
    let spools = Spool::all(&state, &settings);
    if args.flush {
        for spool in &spools {
            let done = spool.deliver(&state, token)?;
            let taken = done.is_taken.then(|| "another process is delivering".to_owned());
            let why = done.stopped.or(taken).map(|why| format!("; {why}")).unwrap_or_default();
            line(&format!("{} delivered, {} refused, {} wait{why}", done.taken, done.refused, spool.waiting().0))?;
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
    let log = state.root().join("agent-hooks.log");
    if log.exists() {
        line(&format!("complaints: {}", log.display()))?;
    }
    Ok(())
}

impl Tool {
    /// For the tests of the grammar: every tool is a subcommand of its name.
    #[cfg(test)]
    const ALL: [Self; 2] = [Self::Claude, Self::Codex];
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_tool_has_its_command_and_a_hooks_own_grammar_is_sound() {
        let names: Vec<String> =
            AgentHooksCommandNames::command().get_subcommands().map(|c| c.get_name().to_owned()).collect();
        assert!(Tool::ALL.iter().all(|tool| names.contains(&tool.kind().to_owned())), "{names:?}");
        Call::command().debug_assert();
    }

    #[derive(Debug, Parser)]
    struct AgentHooksCommandNames {
        #[command(subcommand)]
        _command: AgentHooksCommand,
    }

    #[test]
    fn only_a_hooks_command_line_is_a_hooks() {
        let of = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for line in [
            "memhost",
            "memhost search x",
            "memhost agent-hooks",
            "memhost agent-hooks spool",
            "memhost agent-hooks claude install",
            "memhost agent-hooks codex uninstall",
            "memhost agent-hooks claude --help",
        ] {
            assert!(!is_hook(&of(line)), "{line}");
        }
    }
}
