//! What a person typed for a field of the host's: the flag or argument of the command that runs.

use std::ffi::OsString;
use std::sync::OnceLock;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, Command};

/// The flags and arguments of the command that runs, as a person types them.
static TYPED: OnceLock<Vec<String>> = OnceLock::new();

/// Names that the host and the command line give to one thing.
const OTHER_NAMES: [(&str, &str); 11] = [
    ("occurred-at", "at"),
    ("version", "versions"),
    ("follow", "versions"),
    ("used-as", "as"),
    ("directory", "to"),
    ("value", "value-file"),
    // The id that a command is about. `--token` is the host's.
    ("operation-id", "id"),
    ("job-id", "id"),
    ("delivery-id", "id"),
    ("review-id", "id"),
    ("token-id", "id"),
];

/// What a parser of one value said, and what it means to a person.
const OF_VALUES: [(&str, &str); 5] = [
    ("invalid digit found in string", "write a whole number"),
    ("cannot parse integer from empty string", "write a whole number"),
    ("invalid float literal", "write a number"),
    ("number too large to fit in target type", "the number is too large"),
    ("number too small to fit in target type", "the number is too small"),
];

/// The same command line, in which `-5` is a value and no flag.
pub(super) fn with_negative_numbers(command: Command) -> Command {
    let may_be_negative = |arg: Arg| match arg.get_action().takes_values() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    };
    command.mut_args(may_be_negative).mut_subcommands(with_negative_numbers)
}

/// Prints why the command line is not valid, and ends the process.
pub(super) fn exit(command: Command, mut error: clap::Error) -> ! {
    if error.get(ContextKind::Usage).is_some() {
        // Its own usage has flags that only the environment gives, as if they had to be typed.
        error.insert(
            ContextKind::Usage,
            ContextValue::StyledStr(usage(command.clone(), std::env::args_os())),
        );
    }
    if let Some(ContextValue::String(flag)) =
        error.get(ContextKind::InvalidArg).filter(|_| is_unknown(&error))
        && let Some(tip) = form_of(flag).or_else(|| place_of(command, flag, std::env::args_os()))
    {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    if error.kind() != ErrorKind::ValueValidation {
        error.exit();
    }
    let text = OF_VALUES
        .iter()
        .fold(error.render().to_string(), |text, (said, meant)| text.replace(said, meant));
    eprint!("{text}");
    std::process::exit(2)
}

/// The usage of the command that these arguments name.
fn usage(mut command: Command, arguments: impl Iterator<Item = OsString>) -> StyledStr {
    command.build();
    leaf(&command, arguments).clone().render_usage()
}

/// The command that these arguments name, the program's name first.
fn leaf(command: &Command, arguments: impl Iterator<Item = OsString>) -> &Command {
    arguments.skip(1).fold(command, |leaf, argument| leaf.find_subcommand(argument).unwrap_or(leaf))
}

fn is_unknown(error: &clap::Error) -> bool {
    error.kind() == ErrorKind::UnknownArgument
}

/// How a form of output is chosen here for which other programs have a flag of its own, such as
/// `--json`.
fn form_of(flag: &str) -> Option<String> {
    let form = ["json", "jsonl", "yaml"]
        .into_iter()
        .find(|form| flag.strip_prefix("--") == Some(*form))?;
    Some(format!("type '-o {form}'"))
}

/// Where to type a flag that stands before its command. `None`: the command does not have this
/// flag.
fn place_of(
    mut command: Command,
    flag: &str,
    arguments: impl Iterator<Item = OsString>,
) -> Option<String> {
    command.build();
    let leaf = leaf(&command, arguments);
    let flag = flag.split('=').next()?;
    let is_it = |arg: &Arg| match flag.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => arg.get_short().is_some_and(|short| {
            flag.strip_prefix('-').is_some_and(|rest| rest.starts_with(short))
        }),
    };
    leaf.get_arguments().any(is_it).then_some(())?;
    let name = leaf.get_bin_name().unwrap_or(leaf.get_name());
    Some(format!("'{flag}' goes after the command: {name} {flag} …"))
}

/// Remembers what the command that runs can be given.
pub(super) fn remember(command: &Command, matches: &ArgMatches) {
    let (mut leaf, mut matches) = (command, matches);
    while let Some((name, below)) = matches.subcommand() {
        let Some(found) = leaf.find_subcommand(name) else { break };
        (leaf, matches) = (found, below);
    }
    let typed = leaf.get_arguments().map(|argument| match argument.get_long() {
        Some(long) => format!("--{long}"),
        None => argument.get_id().as_str().to_uppercase(),
    });
    let _ = TYPED.set(typed.collect());
}

/// A field of the host's as a person typed it; the field itself where no flag is like it.
pub(super) fn named(field: &str) -> String {
    name_among(field, TYPED.get().map_or(&[], Vec::as_slice))
}

/// A message of the host's in which fields of the scope are named as a person types them.
pub(super) fn in_message(message: &str) -> String {
    with_flags(message, TYPED.get().map_or(&[], Vec::as_slice))
}

fn with_flags(message: &str, typed: &[String]) -> String {
    let parts = message.split('`').map(|part| match part.starts_with("scope.") {
        true => name_among(part, typed),
        false => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

fn name_among(field: &str, typed: &[String]) -> String {
    let parts: Vec<&str> = field.split('.').filter(|part| part.parse::<usize>().is_err()).collect();
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return field.to_owned() };
    let find = |name: &str| {
        let (flag, argument) = (format!("--{name}"), name.replace('-', "_").to_uppercase());
        typed.iter().find(|typed| **typed == flag || **typed == argument).cloned()
    };
    // A flag whose value is JSON: the rest is inside of it.
    if parts.len() > 1
        && let Some(flag) = find(&kebab(first))
    {
        return format!("{flag} ({})", parts[1..].join("."));
    }
    let whole = kebab(last);
    let words: Vec<&str> = whole.split('-').collect();
    let other =
        OTHER_NAMES.iter().find(|(name, _)| *name == whole).map(|(_, other)| (*other).to_owned());
    let without_kind =
        words.split_last().filter(|(end, rest)| ["id", "key"].contains(end) && !rest.is_empty());
    let candidates = [
        Some(whole.clone()),
        other,
        without_kind.map(|(_, rest)| rest.join("-")),
        whole.strip_suffix('s').map(str::to_owned),
        words.last().filter(|end| !["id", "key"].contains(*end)).map(|end| (*end).to_owned()),
        words.first().map(|start| (*start).to_owned()),
    ];
    candidates
        .into_iter()
        .flatten()
        .find_map(|name| find(&name))
        .unwrap_or_else(|| field.to_owned())
}

/// `topK` as `top-k`.
fn kebab(field: &str) -> String {
    let mut name = String::with_capacity(field.len() + 2);
    for c in field.chars() {
        if c.is_uppercase() {
            name.push('-');
        }
        name.extend(c.to_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_named_as_it_was_typed() {
        let all = |typed: &[&str]| typed.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let search = all(&[
            "QUERY",
            "--company",
            "--agent",
            "--binding",
            "--run",
            "--top-k",
            "--filter",
            "--intent",
        ]);
        for (field, typed) in [
            ("topK", "--top-k"),
            ("scope.agentId", "--agent"),
            ("companyId", "--company"),
            ("bindingKey", "--binding"),
            ("metadataFilter", "--filter"),
            ("query", "QUERY"),
            ("payload.object", "payload.object"),
        ] {
            assert_eq!(name_among(field, &search), typed);
        }
        let update = all(&["KEY", "--limits", "--policy", "--versions", "--revision"]);
        assert_eq!(name_among("limits.callTimeoutMs", &update), "--limits (callTimeoutMs)");
        assert_eq!(name_among("version.follow", &update), "--versions");
        let token = all(&["NAME", "--operation", "--expires-at", "--agent", "--overlap", "--id"]);
        for (field, typed) in [
            ("operations.0", "--operation"),
            ("expiresAt", "--expires-at"),
            ("agentId", "--agent"),
            ("overlapSeconds", "--overlap"),
            ("name", "NAME"),
        ] {
            assert_eq!(name_among(field, &token), typed);
        }
        assert_eq!(name_among("operationId", &all(&["ID", "--company"])), "ID");
        assert_eq!(name_among("tokenId", &all(&["--token", "ID"])), "ID");
        assert_eq!(name_among("companyId", &all(&["ID", "--company"])), "--company");
        assert_eq!(name_among("limitCents", &all(&["--cents"])), "--cents");
        assert_eq!(name_among("value", &all(&["NAME", "--value-file"])), "--value-file");
        assert_eq!(name_among("version", &all(&["--versions"])), "--versions");
        let note = all(&["TEXT", "--agent", "--subject"]);
        assert_eq!(
            with_flags("give `scope.subjectId` or `subject`", &note),
            "give `--subject` or `subject`"
        );
        assert_eq!(with_flags("give `scope.runId`, `", &note), "give `scope.runId`, `");
    }
}
