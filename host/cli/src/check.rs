//! Whether a provider keeps the contract.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use super::args::OutputArgs;
use super::output::line;
use super::{CliError, directories};
use memhost_conformance::{
    CheckError, CheckOptions, Finding, Kit, Mode, Outcome, Report, Selection, Source, Status, handbook,
};
use memhost_core::plugins::LOCAL_MARKDOWN_KEY;
use memhost_types::JsonObject;

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// A component, `.wasm`, or `local-markdown`, the built-in provider.
    #[arg(required_unless_present = "list_rules")]
    file: Option<PathBuf>,
    /// The provider's configuration, a JSON object, or @FILE.
    #[arg(long, default_value = "{}", value_name = "JSON")]
    config: String,
    /// Also try what takes long or much room.
    #[arg(long)]
    thorough: bool,
    /// Only these rules, such as CAP-03; may be given again.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    rule: Vec<String>,
    /// What every record of the check gets as metadata, a JSON object: for providers that need some.
    #[arg(long, default_value = "{}", value_name = "JSON")]
    record_metadata: String,
    /// Grant the origins and secrets that it asks for; its requests go out.
    #[arg(long)]
    allow_network: bool,
    /// With --allow-network: a secret, from the environment variable of its name; may be given again.
    #[arg(long, requires = "allow_network", value_name = "NAME")]
    secret_env: Vec<String>,
    /// Refuse what it asks for: storage, directory, embeddings or clock; may be given again.
    #[arg(long, value_name = "KIND", value_parser = ["storage", "directory", "embeddings", "clock"])]
    deny: Vec<String>,
    /// Write what came of it for continuous integration, as JUnit's XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write a badge, as JSON for an endpoint of shields.io.
    #[arg(long, value_name = "FILE")]
    badge: Option<PathBuf>,
    /// Print every rule with the sentence of the contract that it comes from, as Markdown, and check nothing.
    #[arg(long, action = ArgAction::SetTrue)]
    list_rules: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) async fn run(args: CheckArgs) -> Result<(), CliError> {
    let Some(file) = args.file.as_ref().filter(|_| !args.list_rules) else {
        return line(handbook().trim_end());
    };
    let source = match file.to_str() == Some(LOCAL_MARKDOWN_KEY) && !file.exists() {
        true => Source::Builtin,
        false => Source::File(file.clone()),
    };
    let options = CheckOptions {
        config: object("--config", &args.config)?,
        metadata: object("--record-metadata", &args.record_metadata)?,
        allow_network: args.allow_network,
        deny: args.deny.clone(),
        secrets: args.secret_env.iter().map(|name| secret(name)).collect::<Result<_, _>>()?,
    };
    let mode = if args.thorough { Mode::Thorough } else { Mode::Quick };
    let kit = Kit::open(&source, directories::compiled()).await.map_err(input)?;
    let outcome = kit.check(&options, &Selection { mode, rules: args.rule.clone() }).await;
    kit.close().await;
    let report = outcome.map_err(input)?;
    for (path, text) in [
        (&args.junit, report.to_junit()),
        (&args.badge, serde_json::to_string_pretty(&report.to_badge()).map_err(CliError::host)?),
    ] {
        if let Some(path) = path {
            std::fs::write(path, text).map_err(|error| CliError::input(path.display().to_string(), error))?;
        }
    }
    line(&args.output.format().render(&report.to_json(), "rules", |_| shown(&report))?)?;
    let counts = report.counts();
    match report.status {
        Status::Passed => Ok(()),
        Status::Failed => {
            Err(CliError::Failed(format!("{} of {} rules are broken", counts.failed, counts.failed + counts.passed)))
        }
        Status::Inconclusive => Err(CliError::Failed(
            "nothing could be written, so that next to nothing was tried; see why the rules were skipped".to_owned(),
        )),
    }
}

fn input(error: CheckError) -> CliError {
    match error {
        CheckError::Open(error) => CliError::host(error),
        CheckError::Binding(_) => CliError::input("--config", error),
        CheckError::NoRule { .. } => CliError::input("--rule", error),
        CheckError::File { .. } | CheckError::KeptOut(_) => CliError::input("FILE", error),
    }
}

fn object(flag: &str, text: &str) -> Result<JsonObject, CliError> {
    let text = match text.strip_prefix('@') {
        Some(path) => {
            std::fs::read_to_string(path).map_err(|error| CliError::input(flag, format!("{path}: {error}")))?
        }
        None => text.to_owned(),
    };
    serde_json::from_str(&text).map_err(|error| CliError::input(flag, format!("is no JSON object: {error}")))
}

fn secret(name: &str) -> Result<(String, String), CliError> {
    match std::env::var(name) {
        Ok(value) => Ok((name.to_owned(), value)),
        Err(error) => Err(CliError::input("--secret-env", format!("{name}: {error}"))),
    }
}

/// A line for each rule; of a broken one also what it expects, what was seen, and where the contract says it.
fn shown(report: &Report) -> String {
    let mut lines: Vec<String> = report.findings.iter().map(finding).collect();
    let counts = report.counts();
    let counted = [(counts.passed, "kept"), (counts.failed, "broken"), (counts.skipped, "not tried")];
    let counted: Vec<String> = counted.iter().map(|(count, word)| format!("{count} {word}")).collect();
    let how = if report.mode == Mode::Thorough { "thorough" } else { "quick" };
    lines.push(String::new());
    lines.push(format!("{}: {} ({how}, {:.1} s)", report.name(), counted.join(", "), report.took.as_secs_f64()));
    lines.push(report.badge_line());
    lines.join("\n")
}

fn finding(finding: &Finding) -> String {
    let rule = &finding.rule;
    match &finding.outcome {
        Outcome::Passed => format!("{}  ok      {}", rule.id, rule.title),
        Outcome::Skipped { why } => format!("{}  skip    {}: {}", rule.id, rule.title, one_line(why)),
        Outcome::Failed { saw } => format!(
            "{}  BROKEN  {}\n          expects   {}\n          saw       {}\n          contract  {}, `{}`: {}",
            rule.id,
            rule.title,
            rule.expects,
            one_line(saw),
            rule.contract.file,
            rule.contract.item,
            rule.contract.text
        ),
    }
}

/// What a provider says must not draw on the terminal.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_provider_says_stays_on_its_line() {
        assert_eq!(one_line("a\nb\u{1b}[31mc"), "a b [31mc");
    }

    #[test]
    fn objects_may_be_in_a_file() {
        assert!(object("--config", "[1]").is_err());
        assert_eq!(object("--config", r#"{"a":1}"#).unwrap()["a"], 1);
        let error = object("--config", "@/no/such/file").unwrap_err().to_string();
        assert!(error.contains("/no/such/file"), "{error}");
    }
}
