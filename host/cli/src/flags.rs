//! What a person typed for a field of the host's: the flag or argument of the command that runs.

use std::ffi::OsString;
use std::sync::OnceLock;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, Command};

/// The flags and arguments of the command that runs.
static TYPED: OnceLock<Vec<Typed>> = OnceLock::new();

/// A flag or argument.
struct Typed {
    /// As a person types it, such as `--agent`.
    shown: String,
    /// The fields of requests that it sets, such as `scope.agentId`.
    fields: Vec<String>,
}

impl Typed {
    /// The field that a flag sets has its name in camel case. Where it has another, the flag's id
    /// says so, next to its declaration; `|` is between several.
    fn of(argument: &Arg) -> Self {
        let value = argument.get_value_names().and_then(<[_]>::first).map(ToString::to_string);
        let shown = match argument.get_long() {
            Some(long) => format!("--{long}"),
            None => value.unwrap_or_default(),
        };
        Self { shown, fields: argument.get_id().as_str().split('|').map(camel).collect() }
    }

    fn sets(&self, field: &str) -> bool {
        self.fields.iter().any(|own| own == field)
    }
}

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
    error.exit()
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
    let _ = TYPED.set(leaf.get_arguments().map(Typed::of).collect());
}

/// A field of a request as a person typed it; the field itself where no flag sets it.
pub(super) fn named(field: &str) -> String {
    name_among(field, typed())
}

/// A message of the host's in which fields in backticks are named as a person types them.
pub(super) fn in_message(message: &str) -> String {
    with_flags(message, typed())
}

fn typed() -> &'static [Typed] {
    TYPED.get().map_or(&[], Vec::as_slice)
}

fn with_flags(message: &str, typed: &[Typed]) -> String {
    let parts = message.split('`').map(|part| {
        let flag = typed.iter().find(|typed| part.contains('.') && typed.sets(part));
        flag.map_or(part, |typed| typed.shown.as_str())
    });
    parts.collect::<Vec<_>>().join("`")
}

fn name_among(field: &str, typed: &[Typed]) -> String {
    // The number of an item of a list is not typed.
    let parts: Vec<&str> = field.split('.').filter(|part| part.parse::<usize>().is_err()).collect();
    let path = parts.join(".");
    let exact = typed.iter().find(|typed| typed.sets(&path));
    if let Some(typed) = exact {
        return typed.shown.clone();
    }
    // A flag whose value is JSON: the rest is inside of it.
    for (index, _) in path.rmatch_indices('.') {
        if let Some(typed) = typed.iter().find(|typed| typed.sets(&path[..index])) {
            return format!("{} ({})", typed.shown, &path[index + 1..]);
        }
    }
    // The same field elsewhere in a request, such as the agent of its source.
    let last = |path: &str| path.rsplit('.').next().map(str::to_owned);
    let same = typed.iter().find(|typed| typed.fields.iter().any(|own| last(own) == last(&path)));
    same.map_or_else(|| field.to_owned(), |typed| typed.shown.clone())
}

/// `top_k` as `topK`.
fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let mut letters = word.chars();
        let start = letters.next().map(|letter| letter.to_ascii_uppercase());
        name + &start.into_iter().chain(letters).collect::<String>()
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    /// The flags of a command, such as `record list`.
    fn of(command: &str) -> Vec<Typed> {
        let mut grammar = Cli::command();
        grammar.build();
        let words = command.split(' ');
        let leaf = words.fold(&grammar, |leaf, word| leaf.find_subcommand(word).unwrap());
        leaf.get_arguments().map(Typed::of).collect()
    }

    #[test]
    fn a_field_is_named_as_it_was_typed() {
        for (command, fields) in [
            (
                "search",
                &[
                    ("topK", "--top-k"),
                    ("scope.agentId", "--agent"),
                    ("agentId", "--agent"),
                    ("companyId", "--company"),
                    ("bindingKey", "--binding"),
                    ("metadataFilter", "--filter"),
                    ("filter.issueId", "--from-issue"),
                    ("query", "QUERY"),
                    ("payload.object", "payload.object"),
                ] as &[(&str, &str)],
            ),
            ("capture", &[("payload.text", "TEXT"), ("source.commentId", "--comment-id")]),
            ("note", &[("records.0.text", "TEXT"), ("records.0.metadata", "--metadata")]),
            ("correct", &[("patch.record.text", "TEXT"), ("patch.instruction", "--instruction")]),
            (
                "binding update",
                &[
                    ("limits.callTimeoutMs", "--limits (callTimeoutMs)"),
                    ("version.follow", "--versions"),
                    ("version", "--versions"),
                    ("config", "--config"),
                ],
            ),
            (
                "binding grant",
                &[
                    ("http.0.origin", "--http"),
                    ("http.0.methods.1", "--method"),
                    ("http.0.privateRanges.0", "--private-range"),
                    ("secrets.0", "--secret"),
                    ("storageBytes", "--storage"),
                ],
            ),
            ("binding create", &[("providerKey", "--provider"), ("key", "KEY")]),
            (
                "token create",
                &[
                    ("operations.0", "--operation"),
                    ("expiresAt", "--expires-at"),
                    ("agentId", "--agent"),
                    ("name", "NAME"),
                ],
            ),
            ("token rotate", &[("overlapSeconds", "--overlap"), ("tokenId", "TOKEN")]),
            ("operation show", &[("operationId", "ID"), ("companyId", "--company")]),
            ("operation list", &[("sourceKind", "--source-kind"), ("runId", "--run")]),
            ("budget create", &[("limitCents", "--cents"), ("warnShare", "--warn")]),
            ("charge create", &[("amountCents", "--cents"), ("heartbeatRunId", "--run")]),
            ("secret create", &[("usedAs", "--as"), ("value", "--value-file")]),
            ("store backup", &[("directory", "--to")]),
        ] {
            let typed = of(command);
            for (field, name) in fields {
                assert_eq!(name_among(field, &typed), *name, "{command}: {field}");
            }
        }
    }

    #[test]
    fn a_message_names_flags_instead_of_fields() {
        let note = of("note");
        let message = "give `scope.subjectId` or `subject`";
        assert_eq!(with_flags(message, &note), "give `--subject` or `subject`");
        assert_eq!(with_flags("give `payload.text`, `", &note), "give `payload.text`, `");
    }
}
