//! The list of commands in `memhost --help`, in groups.

use clap::Command;

/// The groups, each with its commands. The last group also has the commands that no group names.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Getting started", &["demo", "serve", "doctor", "context"]),
    ("Memory", &["note", "search", "capture", "correct", "forget", "record", "review"]),
    ("Providers", &["plugin", "binding", "secret", "embeddings", "eval"]),
    (
        "Monitoring",
        &[
            "tail",
            "stats",
            "operation",
            "job",
            "hook",
            "event",
            "activity",
            "evaluation",
            "outgoing",
            "probe",
        ],
    ),
    ("Cost", &["cost", "charge", "budget"]),
    ("Administration", &["company", "token", "store", "cluster", "man", "completions", "help"]),
    ("Agents and other systems", &["mcp", "bridge"]),
];

/// The command line with its commands in groups.
pub(super) fn grouped(command: Command) -> Command {
    // Building adds `help`, a command like the others. The parser builds its own.
    let mut built = command.clone();
    built.build();
    let groups = groups(&built);
    let width = groups
        .iter()
        .flat_map(|(_, rows)| rows)
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or_default();
    let mut text = String::new();
    for (title, rows) in &groups {
        text.push_str(&format!("{title}:\n"));
        for (name, about) in rows {
            text.push_str(&format!("  {name:<width$}  {about}\n"));
        }
        text.push('\n');
    }
    let (head, tail) =
        ("{about-with-newline}\n{usage-heading} {usage}\n\n", "Options:\n{options}{after-help}");
    command.help_template(format!("{head}{text}{tail}"))
}

/// Every command that is shown, as its name and what it does, in groups.
fn groups(command: &Command) -> Vec<(&'static str, Vec<(String, String)>)> {
    let is_named = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let row = |command: &Command| {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        (command.get_name().to_owned(), about)
    };
    let shown = || command.get_subcommands().filter(|command| !command.is_hide_set());
    let mut groups: Vec<(&str, Vec<(String, String)>)> = Vec::new();
    for (title, names) in GROUPS {
        let rows = names
            .iter()
            .filter_map(|name| shown().find(|command| command.get_name() == *name))
            .map(row);
        groups.push((title, rows.collect()));
    }
    if let Some((_, rows)) = groups.last_mut() {
        rows.extend(shown().filter(|command| !is_named(command.get_name())).map(row));
    }
    groups
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    #[test]
    fn every_command_is_in_one_group_and_every_named_command_exists() {
        let mut command = Cli::command();
        command.build();
        let mut listed: Vec<String> =
            groups(&command).into_iter().flat_map(|(_, rows)| rows).map(|(name, _)| name).collect();
        let named: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let missing: Vec<_> =
            named.iter().filter(|name| !listed.iter().any(|listed| listed == *name)).collect();
        assert!(missing.is_empty(), "no such commands: {missing:?}");
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut shown: Vec<String> = shown.map(|command| command.get_name().to_owned()).collect();
        listed.sort_unstable();
        shown.sort_unstable();
        assert_eq!(listed, shown);
    }
}
