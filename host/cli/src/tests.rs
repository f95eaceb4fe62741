//! The grammar of the command line as a whole: one verb, one flag, one meaning.

use std::collections::BTreeMap;

use clap::{Arg, Command as Grammar};

use super::*;

/// The verbs of every noun, as far as it has them.
const VERBS: [&str; 5] = ["list", "show", "create", "update", "delete"];

/// Verbs of a few nouns. A new one is added here on purpose.
const ACTIONS: [&str; 28] = [
    "discard", "drain", "approve", "assign", "backup", "cancel", "capture", "compact", "copy",
    "export", "grant", "import", "inspect", "install", "locomo", "outdated", "pull", "push",
    "reject", "replay", "reset", "resolve", "restore", "retry", "rotate", "scan", "search",
    "trust",
];
const MORE_ACTIONS: [&str; 5] = ["check", "explain", "find", "use", "verify"];
/// Verbs for authors of providers.
const OF_AUTHORS: [&str; 3] = ["dev", "new", "run"];

/// Flags with several meanings, and the reason.
const SEVERAL_MEANINGS: [&str; 16] = [
    // Where a host listens, or which registry is asked.
    "allow-plain-http",
    // The origins of a grant, or what a new project begins with.
    "http",
    // A filter of lists, or the target of an operation.
    "agent",
    "binding",
    "provider",
    "issue",
    "project",
    "run",
    "session",
    "kind",
    // `context` stores them, other commands use them.
    "company",
    "token",
    "url",
    "control-url",
    // A range, in days where costs are summed, else in times.
    "since",
    "until",
];
/// Flags for files, JSON or text, with a meaning for each command.
const OF_THE_THING: [&str; 15] = [
    "ca",
    "to",
    "by",
    "config",
    "data-dir",
    "plugins-dir",
    "trusted-key",
    "trusted-cosign-key",
    "days",
    "listen",
    "none",
    "source-kind",
    "private-range",
    "host-key-file",
    "vault-key-file",
];
/// Command lines that the settings of other tools contain.
const OF_TOOLS: &str = "memhost agent-hooks";
/// Other systems, each a noun with verbs.
const OF_SYSTEMS: &str = "memhost bridge";

/// Hides the values of this test's environment variables.
fn without_values(command: Grammar) -> Grammar {
    command.mut_args(|arg| arg.hide_env_values(true)).mut_subcommands(without_values)
}

fn grammar() -> Grammar {
    let mut grammar = help::grouped(without_values(Cli::command())).term_width(100);
    grammar.build();
    grammar
}

/// Every command that is shown, with its path.
fn all(command: &Grammar, path: &str, found: &mut Vec<(String, Grammar)>) {
    found.push((path.to_owned(), command.clone()));
    for below in
        command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        all(below, &format!("{path} {}", below.get_name()), found);
    }
}

fn commands() -> Vec<(String, Grammar)> {
    let mut found = Vec::new();
    all(&grammar(), "memhost", &mut found);
    assert!(found.len() > 80, "the walk found only {}", found.len());
    found
}

fn flags(command: &Grammar) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.is_hide_set())
}

#[test]
fn the_grammar_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn help_is_as_it_was() {
    let mut text = String::new();
    for (path, mut command) in commands() {
        text.push_str(&format!("## {path}\n\n{}\n", command.render_help()));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn every_command_and_every_argument_is_documented() {
    let mut bare = Vec::new();
    for (path, command) in commands() {
        if command.get_about().is_none() {
            bare.push(path.clone());
        }
        let without =
            flags(&command).filter(|arg| arg.get_help().is_none() && arg.get_long_help().is_none());
        bare.extend(without.map(|arg| format!("{path}: {}", arg.get_id())));
    }
    assert!(bare.is_empty(), "without a word of help: {bare:#?}");
}

/// Every field of a policy is in the help of `--policy`.
#[test]
fn the_help_of_policies_names_every_field() {
    let policy = serde_json::to_value(memhost_types::BindingPolicy::default()).unwrap();
    let fields: Vec<&String> = policy.as_object().unwrap().keys().collect();
    let mut tested = 0;
    for (path, command) in commands() {
        let Some(arg) = flags(&command).find(|arg| arg.get_long() == Some("policy")) else {
            continue;
        };
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        for field in &fields {
            assert!(
                help.contains(field.as_str()),
                "{path} --policy does not name `{field}`: {help}"
            );
        }
        tested += 1;
    }
    assert_eq!(tested, 2);
}

#[test]
fn verbs_are_those_that_are_known() {
    let is_known =
        |verb: &str| [&VERBS[..], &ACTIONS, &MORE_ACTIONS, &OF_AUTHORS].concat().contains(&verb);
    for (path, command) in commands().into_iter().filter(|(path, _)| !path.starts_with(OF_TOOLS)) {
        let parts: Vec<&str> =
            path.split(' ').skip(if path.starts_with(OF_SYSTEMS) { 2 } else { 1 }).collect();
        if let [thing, verb] = parts.as_slice() {
            assert!(is_known(verb), "`{thing} {verb}` is no known verb");
        }
        assert!(parts.len() < 3, "{path} is too deep");
        let verbs: Vec<&str> = command.get_subcommands().map(Grammar::get_name).collect();
        let things = !verbs.is_empty()
            && path != "memhost"
            && !["memhost store", "memhost eval"].contains(&path.as_str());
        let things = things && !path.starts_with(OF_SYSTEMS);
        assert!(
            !things || verbs.contains(&"list") || verbs.contains(&"show"),
            "{path} can be neither listed nor shown"
        );
    }
}

#[test]
fn every_list_has_pages_and_everything_that_is_looked_at_can_be_watched() {
    for (path, command) in commands() {
        let has = |flag: &str| flags(&command).any(|arg| arg.get_long() == Some(flag));
        // A cluster has a few hosts, whose list has no pages.
        if path == "memhost cluster list" {
            assert!(has("watch"), "{path}");
        } else if path.ends_with(" list") {
            assert!(has("limit") && has("cursor") && has("all") && has("watch"), "{path}");
        }
        if path.ends_with(" show") {
            // Only this person changes contexts.
            assert!(
                has("watch")
                    || ["memhost context show", "memhost embeddings show"].contains(&path.as_str()),
                "{path}"
            );
        }
        let is_of_context = path.starts_with("memhost context") || path.starts_with(OF_TOOLS);
        if has("company") && !is_of_context {
            assert!(has("output") && has("context") && has("data-dir"), "{path}");
        }
    }
}

#[test]
fn one_flag_means_one_thing() {
    let mut meanings: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (path, command) in commands().into_iter().filter(|(path, _)| !path.starts_with(OF_TOOLS)) {
        for arg in flags(&command) {
            let Some(long) = arg.get_long().filter(|long| *long != "help") else { continue };
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let takes = arg.get_value_names().map(|names| format!("{names:?}")).unwrap_or_default();
            meanings
                .entry(long.to_owned())
                .or_default()
                .insert(format!("{takes} {help}"), path.clone());
        }
    }
    let allowed = [&SEVERAL_MEANINGS[..], &OF_THE_THING].concat();
    let wrong: Vec<_> = meanings
        .iter()
        .filter(|(long, meanings)| meanings.len() > 1 && !allowed.contains(&long.as_str()))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let idle: Vec<_> = allowed
        .iter()
        .filter(|long| meanings.get(**long).is_none_or(|all| all.len() < 2))
        .collect();
    assert!(idle.is_empty(), "no exceptions are needed for {idle:?}");
}

#[test]
fn the_form_of_the_answer_may_be_said_anywhere() {
    for line in [
        "--output yaml job list",
        "job --output yaml list",
        "job list --output yaml",
        "job list -o yaml",
    ] {
        let cli = Cli::try_parse_from(["memhost"].into_iter().chain(line.split(' '))).unwrap();
        let Some(Command::Job(job::JobCommand::List { page, .. })) = cli.command else {
            panic!("{line}")
        };
        assert_eq!(page.company.host.output.format(), output::Format::Yaml, "{line}");
    }
    let typo = Cli::try_parse_from(["memhost", "jobs"]).unwrap_err().to_string();
    assert!(typo.contains("'job'"), "{typo}");
}
