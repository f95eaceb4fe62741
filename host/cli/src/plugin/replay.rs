//! `memhost plugin replay`: repeats a recorded operation on another build and shows the difference.

mod recorded;
mod state;

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use self::recorded::Recorded;
use self::state::{Data, State};
use super::run::measured;
use super::trial::{Called, Setup, Trial, took};
use crate::answer::{self, Answer};
use crate::args::{CompanyArgs, NetworkArgs};
use crate::output::{Format, line};
use crate::texts::text;
use crate::{CliError, Result};
use memhost_sandbox::Metered;
use memhost_types::{CaptureResponse, CorrectResponse, GetResponse, Operation, UpsertResponse};

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Operation ID.
    id: String,
    /// Component file to call, `.wasm`.
    file: PathBuf,
    /// Component file to compare with [default: with --data-dir or --backup the build that answered
    /// last, otherwise the recorded answer].
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Start with empty storage instead of the records that the host lists.
    #[arg(long, conflicts_with_all = ["data_dir", "backup"])]
    empty: bool,
    /// Use this backup instead.
    #[arg(long, value_name = "DIR", conflicts_with = "data_dir")]
    backup: Option<PathBuf>,
    #[command(flatten)]
    network: NetworkArgs,
    /// With --allow-network: repeat an operation that wrote, which writes at the service behind the
    /// provider again.
    #[arg(long, requires = "allow_network")]
    repeat_writes: bool,
    #[command(flatten)]
    company: CompanyArgs,
}

/// The answer of one build, or the recorded answer.
struct Side {
    title: String,
    said: Value,
    took: Option<Metered>,
}

pub(super) async fn run(args: ReplayArgs) -> Result<()> {
    let scratch = tempfile::Builder::new().prefix("memhost-replay-").tempdir()?;
    let from = match (&args.backup, &args.company.host.data_dir) {
        (Some(backup), _) => Data::Backup(backup),
        (None, Some(data_dir)) => Data::Stopped(data_dir),
        (None, None) if args.empty => Data::Nothing,
        (None, None) => Data::Running,
    };
    let state = State::take(&args.id, from, &args.company, scratch.path()).await?;
    let recorded = Recorded::of(&state.operation, &state.binding.key)?;
    if recorded.is_write && args.network.network()?.is_some() && !args.repeat_writes {
        let message = "is an operation that wrote: with --allow-network each build would write at \
                       the service behind the provider again; add --repeat-writes where that may \
                       be, or leave --allow-network out";
        return Err(CliError::input(args.id, message));
    }
    let Operation { provider_key, provider_version, .. } = &state.operation;
    let answered_by = format!("{} {}, as recorded", text(provider_key), text(provider_version));
    let after = ask(&args, &state, &recorded, &args.file, &scratch.path().join("after")).await?;
    let before = match args.against.clone().or_else(|| state.build.clone()) {
        Some(file) => {
            Some(ask(&args, &state, &recorded, &file, &scratch.path().join("before")).await?)
        }
        None => None,
    };
    let (before, after) = match before {
        Some((before, called)) => {
            let (mut before, mut after) = (side(before, &called)?, side(after.0, &after.1)?);
            if before.title == after.title {
                (before.title, after.title) =
                    (format!("{} (before)", before.title), format!("{} (after)", after.title));
            }
            (before, after)
        }
        // A record holds less than an answer, so only what it holds is compared.
        None => {
            let (title, called) = after;
            let said = recorded::outline(&state.operation);
            let recorded = Side { title: answered_by, said, took: None };
            let said = called.operation.read()?.as_ref().map(recorded::outline);
            let said = said.unwrap_or_default();
            (recorded, Side { title, said, took: Some(called.took) })
        }
    };
    show(&args, &state, &before, &after)
}

/// Calls a build on its own copy of the state.
async fn ask(
    args: &ReplayArgs,
    state: &State,
    recorded: &Recorded,
    file: &Path,
    directory: &Path,
) -> Result<(String, Called)> {
    let setup = Setup {
        file: file.to_owned(),
        company: state.operation.company_id.clone(),
        key: state.binding.key.clone(),
        config: Some(state.binding.config.clone()),
        limits: Some(state.binding.limits),
        network: args.network.network()?,
        // A copied host has jobs and deliveries that must not run here.
        has_background: false,
    };
    let trial = Trial::open(directory, setup).await?;
    state.fill(&trial).await?;
    trial.warm().await;
    let mut called = trial.call(recorded.route, &recorded.request).await?;
    called.answer = match called.answer {
        Ok(answer) => Ok(read_back(&trial, recorded, answer).await?),
        failed => failed,
    };
    let description = &trial.inspection.description;
    let title = format!(
        "{} {}, {}",
        description.provider_key,
        description.version,
        trial.inspection.digest.short()
    );
    trial.end().await?;
    Ok((title, called))
}

/// Adds the records that a write made to its answer, which has their ids only.
async fn read_back(
    trial: &Trial,
    recorded: &Recorded,
    answer: Answer<Value>,
) -> Result<Answer<Value>> {
    let handles = match recorded.route {
        "capture" => answer::read::<CaptureResponse>(answer.json())?.records,
        "records" => answer::read::<UpsertResponse>(answer.json())?.records,
        "correct" => vec![answer::read::<CorrectResponse>(answer.json())?.record],
        _ => return Ok(answer),
    };
    let mut written = Vec::new();
    for handle in handles {
        let scope = &recorded.request["scope"];
        let body = json!({ "scope": scope, "bindingKey": trial.key, "handle": handle });
        let read: Result<Answer<GetResponse>, _> =
            trial.host.post(&trial.runtime("get"), &body).await;
        written.push(match read {
            Ok(read) => json!(read.read()?.record),
            Err(error) => error.to_string().into(),
        });
    }
    let mut answer = answer.into_json();
    if !written.is_empty() {
        answer["written"] = written.into();
    }
    Ok(Answer::new(answer))
}

fn side(title: String, called: &Called) -> Result<Side> {
    let answer = match &called.answer {
        Ok(answer) => answer.json().clone(),
        Err(error) => json!({ "error": error.to_string() }),
    };
    let operation = called.operation.read()?;
    let id = operation.map(|operation| operation.id.to_string()).unwrap_or_default();
    let said = recorded::settled(&answer, &id);
    Ok(Side { title, said, took: Some(called.took) })
}

fn show(args: &ReplayArgs, state: &State, before: &Side, after: &Side) -> Result<()> {
    let format = args.company.host.output.format();
    if format != Format::Table {
        let side = |side: &Side| {
            let took = side.took.map(took);
            json!({ "build": side.title, "answer": side.said, "took": took })
        };
        let answer = json!({
            "operationId": args.id, "state": state.about, "isSame": before.said == after.said,
            "before": side(before), "after": side(after),
        });
        return line(&format.render(&answer, "", || Ok(String::new()))?);
    }
    line(&format!("{} {}, on {}", state.operation.kind, args.id, state.about))?;
    for side in [before, after] {
        if let Some(took) = side.took {
            line(&format!("{}: {}", side.title, measured(took)))?;
        }
    }
    line(&difference(before, after)?)
}

fn difference(before: &Side, after: &Side) -> Result<String> {
    if before.said == after.said {
        let what = if before.took.is_some() {
            "the answers are the same"
        } else {
            "the answer is as recorded"
        };
        return Ok(format!("\n{what}"));
    }
    let written = |side: &Side| {
        Format::Yaml.render(&side.said, "", || Ok(String::new())).map(|text| text + "\n")
    };
    let (old, new) = (written(before)?, written(after)?);
    let diff = similar::TextDiff::from_lines(&old, &new);
    let shown =
        diff.unified_diff().context_radius(3).header(&before.title, &after.title).to_string();
    Ok(format!("\n{}", shown.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(title: &str, said: Value) -> Side {
        Side { title: title.to_owned(), said, took: None }
    }

    #[test]
    fn a_difference_names_both_builds_and_shows_what_changed() {
        let before =
            said("notes 1", json!({ "snippets": [{ "text": "the gate is green", "score": 0.5 }] }));
        let after =
            said("notes 2", json!({ "snippets": [{ "text": "the gate is green", "score": 1.0 }] }));
        let shown = difference(&before, &after).unwrap();
        assert!(shown.contains("--- notes 1\n+++ notes 2"), "{shown}");
        assert!(shown.contains("0.5") && shown.contains("1.0"), "{shown}");
        assert_eq!(difference(&before, &before).unwrap(), "\nthe answer is as recorded");
    }
}
