//! `memhost plugin check`: the conformance suite on one provider.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use super::args::{NetworkArgs, OutputArgs};
use super::output::line;
use super::{CliError, Result, argument, process, user_files};
use memhost_conformance::{
    CheckError, CheckOptions, Finding, Mode, Outcome, Report, Selection, Source, Status, Suite,
    handbook,
};
use memhost_core::plugins::LOCAL_MARKDOWN_KEY;
use memhost_types::{JsonObject, counted};

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Component file, `.wasm`, or `local-markdown` for the built-in provider.
    #[arg(required_unless_present = "list_rules")]
    file: Option<PathBuf>,
    /// Provider configuration, a JSON object, or @FILE.
    #[arg(long, default_value = "{}", value_name = "JSON")]
    config: String,
    /// Also run the slow and large tests.
    #[arg(long)]
    thorough: bool,
    /// Run only this rule, such as CAP-02; repeatable.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    rule: Vec<String>,
    /// Metadata for every record of the suite, a JSON object.
    #[arg(long, default_value = "{}", value_name = "JSON")]
    record_metadata: String,
    #[command(flatten)]
    network: NetworkArgs,
    /// Refuse this permission: storage, directory, embeddings or clock; repeatable.
    #[arg(
        long, value_name = "KIND", value_parser = ["storage", "directory", "embeddings", "clock"]
    )]
    deny: Vec<String>,
    /// Write a JUnit XML report to this file.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write badge JSON for a shields.io endpoint to this file.
    #[arg(long, value_name = "FILE")]
    badge: Option<PathBuf>,
    /// Print all rules with their source in the contract, as Markdown, and exit.
    #[arg(long, action = ArgAction::SetTrue)]
    list_rules: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) async fn run(args: CheckArgs) -> Result<()> {
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
        network: args.network.network()?,
        deny: args.deny.clone(),
    };
    let has_network = options.network.is_some();
    let mode = if args.thorough { Mode::Thorough } else { Mode::Quick };
    let suite = Suite::open(&source, user_files::compiled_dir(), process::this_program()?)
        .await
        .map_err(input)?;
    let outcome = suite.check(&options, &Selection { mode, rules: args.rule.clone() }).await;
    suite.close().await;
    let report = outcome.map_err(input)?;
    for (path, text) in [
        (&args.junit, report.to_junit().map_err(input)?),
        (&args.badge, serde_json::to_string_pretty(&report.to_badge()).map_err(CliError::host)?),
    ] {
        if let Some(path) = path {
            std::fs::write(path, text).map_err(|error| CliError::file(path, &error))?;
        }
    }
    line(&args.output.format().tell(&report.to_json(), "rules", || shown(&report))?)?;
    let counts = report.counts();
    match report.status {
        Status::Passed => Ok(()),
        Status::Failed => Err(CliError::Failed(format!(
            "{} of {} rules failed",
            counts.failed,
            counts.failed + counts.passed
        ))),
        Status::Inconclusive if report.wants_network && !has_network => Err(CliError::Failed(
            "it asks for the network, so almost nothing was tested: add --allow-network, and \
             --secret-env NAME for each secret that it asks for"
                .to_owned(),
        )),
        Status::Inconclusive => Err(CliError::Failed(
            "no record could be written, so almost nothing was tested; see the reasons of the \
             skipped rules"
                .to_owned(),
        )),
    }
}

fn input(error: CheckError) -> CliError {
    match error {
        CheckError::Open(_) | CheckError::Report(_) => CliError::host(error),
        CheckError::Binding(_) => CliError::input("--config", error),
        CheckError::NoRule { .. } => CliError::input("--rule", error),
        CheckError::File { .. } | CheckError::KeptOut(_) => CliError::input("FILE", error),
    }
}

fn object(flag: &str, text: &str) -> Result<JsonObject> {
    argument::object(flag, Some(text)).map(Option::unwrap_or_default)
}

/// One line for each rule; a failed rule also shows the expected and actual result and the sentence
/// of the contract.
fn shown(report: &Report) -> String {
    let is_admitted = report.provider.is_some();
    let is_skipped = |finding: &&Finding| matches!(finding.outcome, Outcome::Skipped { .. });
    let (skipped, tested): (Vec<&Finding>, Vec<&Finding>) =
        report.findings.iter().partition(is_skipped);
    // The other rules of a component that is not admitted all have the same reason, and would hide
    // the broken one.
    let told: Vec<&Finding> = match (is_admitted, tested.is_empty()) {
        (true, _) => report.findings.iter().collect(),
        (false, false) => tested,
        (false, true) => skipped.iter().take(1).copied().collect(),
    };
    let mut lines: Vec<String> = told.iter().copied().map(finding).collect();
    if !is_admitted {
        let left = counted(report.findings.len() - told.len(), "rule needs", "rules need");
        lines.push(format!("the other {left} a component that the host admits"));
    }
    let counts = report.counts();
    let counted =
        [(counts.passed, "passed"), (counts.failed, "failed"), (counts.skipped, "skipped")];
    let counted: Vec<String> =
        counted.iter().map(|(count, word)| format!("{count} {word}")).collect();
    let how = if report.mode == Mode::Thorough { "thorough" } else { "quick" };
    lines.push(String::new());
    lines.push(format!(
        "{}: {} ({how}, {:.1} s)",
        report.name(),
        counted.join(", "),
        report.took.as_secs_f64()
    ));
    lines.push(report.badge_line());
    lines.join("\n")
}

fn finding(finding: &Finding) -> String {
    let rule = &finding.rule;
    let (word, more) = match &finding.outcome {
        Outcome::Passed => ("ok  ", String::new()),
        Outcome::Skipped { why } => ("skip", format!(": {}", one_line(why))),
        Outcome::Failed { saw } => {
            let (expects, saw, contract) = (&rule.expects, one_line(saw), &rule.contract);
            let contract = format!("{}, `{}`: {}", contract.file, contract.item, contract.text);
            let lines =
                [("expected", expects.to_string()), ("actual  ", saw), ("contract", contract)];
            let line = |(name, text): (&str, String)| format!("\n          {name}  {text}");
            ("FAIL", lines.map(line).concat())
        }
    };
    format!("{}  {word}    {}{more}", rule.id, rule.title)
}

/// Removes control characters from a provider's text.
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
