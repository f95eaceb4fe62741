//! The command line. The subcommands of the tools follow from the list in `tools.rs`.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches, Parser, Subcommand};

use super::HooksError;
use super::hook::{self, NAME};
use super::install::{self, InstallArgs, PlaceArgs};
use super::settings::HookArgs;
use super::spool_command::{self, SpoolArgs};
use super::state::State;
use super::tools::{self, TOOLS, Tool};

const SPOOL: &str = "spool";

/// What a person typed after `memhost agent-hooks`: a tool with its arguments, or `spool`.
#[derive(Debug)]
pub struct AgentHooksCommand(Chosen);

#[derive(Debug)]
enum Chosen {
    Tool(Tool, Box<ToolArgs>),
    Spool(Box<SpoolArgs>),
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
struct ToolArgs {
    #[command(subcommand)]
    action: Option<ToolAction>,
    #[command(flatten)]
    hook: HookArgs,
}

#[derive(Debug, Subcommand)]
enum ToolAction {
    /// Add the hooks to the tool's settings
    Install(InstallArgs),
    /// Remove the hooks from the tool's settings; everything else in them stays
    Uninstall(PlaceArgs),
    /// Run as the tool's `notify` program, which gets its JSON as the last argument
    Notify(NotifyArgs),
}

#[derive(Debug, Args)]
struct NotifyArgs {
    #[command(flatten)]
    hook: HookArgs,
    /// What happened, as JSON
    json: String,
}

/// The command line of a hook alone. Parsing it is quick, because the other commands of `memhost`
/// are not described.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct HookCommand {
    #[command(flatten)]
    hook: HookArgs,
    /// The JSON that a `notify` program gets as its last argument.
    json: Option<String>,
}

impl Subcommand for AgentHooksCommand {
    fn augment_subcommands(command: Command) -> Command {
        let tool = |tool: &Tool| {
            let about = format!(
                "Run as a hook of {}, which gives the event on standard input",
                tool.title()
            );
            let command = ToolArgs::augment_args(Command::new(tool.name())).about(about);
            if tool.has_notify() { command } else { without_notify(command) }
        };
        let spool = SpoolArgs::augment_args(Command::new(SPOOL))
            .about("Show the events that no host has yet");
        let command = command.subcommand_required(true).arg_required_else_help(true);
        command.subcommands(TOOLS.iter().map(tool)).subcommand(spool)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        name == SPOOL || tools::find(name).is_some()
    }
}

/// Hides from the help of a tool what needs a `notify` program.
fn without_notify(command: Command) -> Command {
    let hidden = |command: Command| command.mut_arg("notify", |arg| arg.hide(true));
    command
        .mut_subcommand("install", hidden)
        .mut_subcommand("uninstall", hidden)
        .mut_subcommand("notify", |command| command.hide(true))
}

impl FromArgMatches for AgentHooksCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (name, matches) =
            matches.subcommand().ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))?;
        if let Some(tool) = tools::find(name) {
            return Ok(Self(Chosen::Tool(tool, Box::new(ToolArgs::from_arg_matches(matches)?))));
        }
        Ok(Self(Chosen::Spool(Box::new(SpoolArgs::from_arg_matches(matches)?))))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Runs the hook, if this is the command line of one, and says whether it was.
///
/// `arguments` are those of the process, the program's name first. A mistake in them goes to the
/// log: the exit code with which other commands refuse a command line would stop the tool.
pub fn is_hook(arguments: &[OsString]) -> bool {
    let Some((tool, is_notify, rest)) = hook_arguments(arguments) else { return false };
    match HookCommand::try_parse_from(rest) {
        Ok(call) if is_notify => hook::run(tool, &call.hook, Some(call.json.unwrap_or_default())),
        Ok(call) => hook::run(tool, &call.hook, None),
        Err(error) => {
            let message = error.to_string();
            let first = message.lines().next().unwrap_or_default();
            State::open()
                .log(&format!("the hook's command line is wrong: {first}; install the hook again"));
        }
    }
    true
}

/// The tool, whether it is its `notify` program, and the arguments for the hook; nothing for other
/// commands and for questions after help.
fn hook_arguments(arguments: &[OsString]) -> Option<(Tool, bool, &[OsString])> {
    let word = |index: usize| arguments.get(index).and_then(|word| word.to_str());
    let tool = tools::find(word(2)?).filter(|_| word(1) == Some(NAME))?;
    let is_notify = word(3) == Some("notify");
    if matches!(
        word(3),
        Some("install" | "uninstall" | "help" | "-h" | "--help" | "-V" | "--version")
    ) {
        return None;
    }
    let rest = &arguments[if is_notify { 4 } else { 3 }..];
    let wants_help = is_notify && rest.iter().any(|word| word == "--help" || word == "-h");
    (!wants_help).then_some((tool, is_notify, rest))
}

/// Runs a command that a person typed.
///
/// # Errors
/// When an argument is wrong, or a file or standard output cannot be read or written.
pub fn run(command: AgentHooksCommand) -> Result<(), HooksError> {
    let (tool, args) = match command.0 {
        Chosen::Tool(tool, args) => (tool, args),
        Chosen::Spool(args) => return spool_command::run(&args),
    };
    match args.action {
        Some(ToolAction::Install(args)) => return install::install(tool, &args),
        Some(ToolAction::Uninstall(args)) => return install::uninstall(tool, &args),
        Some(ToolAction::Notify(args)) => hook::run(tool, &args.hook, Some(args.json)),
        None => hook::run(tool, &args.hook, None),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(subcommand)]
        command: AgentHooksCommand,
    }

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn every_tool_has_a_command() {
        Program::command().debug_assert();
        HookCommand::command().debug_assert();
        for tool in TOOLS {
            let line = format!("memhost {} install --scope project", tool.name());
            let Chosen::Tool(found, args) =
                Program::try_parse_from(words(&line)).unwrap().command.0
            else {
                panic!("{line}");
            };
            assert_eq!(found.name(), tool.name());
            assert!(matches!(args.action, Some(ToolAction::Install(_))), "{line}");
        }
        assert!(matches!(
            Program::try_parse_from(words("memhost spool")).unwrap().command.0,
            Chosen::Spool(_)
        ));
        assert!(Program::try_parse_from(words("memhost")).is_err());
        assert!(Program::try_parse_from(words("memhost claudette")).is_err());
    }

    #[test]
    fn a_command_line_of_a_hook_is_recognized() {
        for line in [
            "memhost",
            "memhost search x",
            "memhost agent-hooks",
            "memhost agent-hooks spool",
            "memhost agent-hooks claude install",
            "memhost agent-hooks codex uninstall",
            "memhost agent-hooks claude --help",
            "memhost agent-hooks codex notify --help",
            "memhost other claude",
        ] {
            assert!(hook_arguments(&words(line)).is_none(), "{line}");
        }
        for tool in TOOLS {
            let line =
                words(&format!("memhost agent-hooks {} notify --company x json", tool.name()));
            let (found, is_notify, rest) = hook_arguments(&line).unwrap();
            assert_eq!((found.name(), is_notify, rest.len()), (tool.name(), true, 3));
            let line = words(&format!("memhost agent-hooks {}", tool.name()));
            let (found, is_notify, rest) = hook_arguments(&line).unwrap();
            assert_eq!((found.name(), is_notify, rest.len()), (tool.name(), false, 0));
        }
    }
}
