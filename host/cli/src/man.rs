//! Manual pages and completions, made from the definition of the command line.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;

use super::output::line;
use super::{CliError, Result};
use memhost_types::counted;

#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Write a page for every command to this directory, such as ~/.local/share/man/man1; created
    /// if missing.
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Command to print the page of, such as `binding create` [default: memhost].
    #[arg(conflicts_with = "to", value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// Shell.
    shell: clap_complete::Shell,
}

/// Prints a page, or writes all of them.
pub(super) fn run(args: &ManArgs, mut grammar: Command) -> Result<()> {
    grammar.build();
    if let Some(directory) = &args.to {
        let made = std::fs::create_dir_all(directory);
        made.map_err(|error| CliError::input("--to", format!("{}: {error}", directory.display())))?;
        let count = write(&grammar, directory)?;
        return line(&format!(
            "wrote {} to {}",
            counted(count, "page", "pages"),
            directory.display()
        ));
    }
    let mut command = &grammar;
    for name in &args.command {
        command = command.find_subcommand(name).ok_or_else(|| {
            let message = format!(
                "unknown command `{name}` of `{}`; see `memhost --help`",
                command.get_name()
            );
            CliError::input("COMMAND", message)
        })?;
    }
    let mut page = Vec::new();
    man(command).render(&mut page)?;
    Ok(std::io::stdout().lock().write_all(&page)?)
}

fn man(command: &Command) -> Man {
    Man::new(command.clone())
        .source(concat!("memhost ", env!("CARGO_PKG_VERSION")))
        .manual("memhost")
}

fn write(command: &Command, directory: &Path) -> Result<usize> {
    if command.is_hide_set() || command.get_name() == "help" {
        return Ok(0);
    }
    let man = man(command);
    let file = directory.join(man.get_filename());
    let mut page = Vec::new();
    man.render(&mut page)?;
    std::fs::write(&file, page)
        .map_err(|error| CliError::input("--to", format!("{}: {error}", file.display())))?;
    command.get_subcommands().try_fold(1, |count, below| Ok(count + write(below, directory)?))
}

/// Prints a completion script.
pub(super) fn completions(args: &CompletionsArgs, mut grammar: Command) -> Result<()> {
    // Into memory first: the generator panics if the reader closes the pipe.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut grammar, "memhost", &mut script);
    Ok(std::io::stdout().lock().write_all(&script)?)
}
