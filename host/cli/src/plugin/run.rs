//! `memhost plugin run`: calls one build and shows the answers, the log, and the resources that it
//! used.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::call::Call;
use super::trial::{Called, Setup, Trial, took};
use crate::answer::{self, Answer};
use crate::args::{NetworkArgs, OutputArgs};
use crate::output::{Format, line};
use crate::texts::micros;
use crate::{CliError, Result, argument};
use memhost_sandbox::Metered;
use memhost_types::{CaptureResponse, LogLine};

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Component file, `.wasm`.
    file: PathBuf,
    /// Calls, after `--`: describe, capture TEXT, upsert TEXT…, query TEXT, list, get ID, forget
    /// ID…, correct ID TEXT, explain TEXT or browse [PATH], or a name and the route's request as
    /// JSON. Separate several calls with `--`.
    #[arg(last = true, required = true, value_name = "CALL")]
    calls: Vec<String>,
    /// Provider configuration, a JSON object.
    #[arg(long, value_name = "JSON")]
    config: Option<String>,
    /// Agent ID that the calls act as.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Limits as a JSON object, such as '{"callTimeoutMs":5000}'.
    #[arg(long, value_name = "JSON")]
    limits: Option<String>,
    #[command(flatten)]
    network: NetworkArgs,
    /// Keep the provider's storage in this directory for the next run [default: discard it].
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) async fn run(args: RunArgs) -> Result<()> {
    let calls = Call::all(&args.calls)?;
    let mut setup = Setup::of(&args.file)?;
    setup.config = argument::object("--config", args.config.as_deref())?;
    setup.limits =
        args.limits.as_deref().map(|limits| argument::json("--limits", limits)).transpose()?;
    setup.network = args.network.network()?;
    let scratch = tempfile::Builder::new().prefix("memhost-run-").tempdir()?;
    let directory = args.keep.clone().unwrap_or_else(|| scratch.path().to_owned());
    let trial = Trial::open(&directory, setup).await?;
    let (format, mut all, mut failed) = (args.output.format(), Vec::new(), None);
    let mut worked_before = trial.jobs().await?.0.len();
    for call in &calls {
        let provider = trial.inspection.description.provider_key.as_str();
        let Some((route, body)) = call.request(&trial.company, args.agent.as_deref(), provider)?
        else {
            let answer = serde_json::to_value(&trial.inspection).map_err(CliError::host)?;
            let called = Called {
                answer: Ok(Answer::new(answer)),
                operation: Answer::new(Value::Null),
                took: Metered::default(),
            };
            show(format, call, &called, &mut all)?;
            continue;
        };
        let called = trial.call(route, &body).await?;
        show(format, call, &called, &mut all)?;
        // A capture may leave jobs for the host to run.
        let leaves_jobs = match &called.answer {
            Ok(answer) if route == "capture" => {
                !answer::read::<CaptureResponse>(answer.json())?.jobs.is_empty()
            }
            _ => false,
        };
        if leaves_jobs {
            let (worked, took) = trial.jobs().await?;
            let job = Call::of_a_job();
            for (number, operation) in worked.iter().skip(worked_before).enumerate() {
                let took = if number == 0 { took } else { Metered::default() };
                let json = operation.json();
                let (answer, operation) =
                    (Ok(Answer::new(json.clone())), Answer::new(json.clone()));
                let called = Called { answer, operation, took };
                show(format, &job, &called, &mut all)?;
            }
            worked_before = worked.len();
        }
        if let Err(error) = called.answer {
            failed = Some(error);
            break;
        }
    }
    if format != Format::Table {
        line(&format.render(&json!({ "calls": all }), "calls", || Ok(String::new()))?)?;
    }
    trial.end().await?;
    failed.map_or(Ok(()), Err)
}

/// Tables are printed at once; other formats are collected.
fn show(format: Format, call: &Call, called: &Called, all: &mut Vec<Value>) -> Result<()> {
    if format == Format::Table {
        return line(&shown(call, called)?);
    }
    let (answer, error) = match &called.answer {
        Ok(answer) => (answer.json().clone(), Value::Null),
        Err(error) => (Value::Null, error.to_string().into()),
    };
    all.push(json!({
        "call": call.name, "answer": answer, "error": error,
        "operation": called.operation.json(), "took": took(called.took),
    }));
    Ok(())
}

fn shown(call: &Call, called: &Called) -> Result<String> {
    let mut lines = vec![format!("{}:", call.name)];
    // The error of the last call is the command's own.
    if let Ok(answer) = &called.answer {
        lines.extend(call.shown(answer.json())?.lines().map(|line| format!("  {line}")));
    }
    let operation = called.operation.read()?;
    for LogLine { level, text } in operation.iter().flat_map(|operation| &operation.log) {
        lines.push(format!("  {level:<6} {text}"));
    }
    if called.took.instructions > 0 {
        lines.push(format!("  {}", measured(called.took)));
    }
    Ok(lines.join("\n"))
}

/// The resources of a call, in one line.
pub(super) fn measured(took: Metered) -> String {
    format!(
        "{} in the provider, {} instructions, {:.1} MiB peak memory",
        micros(took.provider_us),
        grouped(took.instructions),
        took.memory_bytes as f64 / f64::from(1 << 20),
    )
}

/// A number with separators between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let groups = digits.as_bytes()[first..]
        .chunks(3)
        .map(|group| String::from_utf8_lossy(group).into_owned());
    let head = (first > 0).then(|| digits[..first].to_owned());
    head.into_iter().chain(groups).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_can_be_read() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
