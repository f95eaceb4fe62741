//! `memhost eval`: measures recall on a benchmark.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};

use super::args::OutputArgs;
use super::output::{line, table};
use super::plugin::trial::{check_admitted, install};
use super::{CliError, Result, argument, process, user_files};
use memhost_benchmark::{EvalOptions, Evaluation, Score, read_locomo, run as evaluate};
use memhost_core::plugins::LOCAL_MARKDOWN_KEY;
use memhost_core::{Audit, Service, ServiceOptions};
use memhost_embeddings::EmbeddingsOptions;
use memhost_types::{ProviderKey, TextId};

#[derive(Debug, Subcommand)]
pub(super) enum EvalCommand {
    /// Run LoCoMo: long conversations, and questions that they answer.
    Locomo(LocomoArgs),
}

#[derive(Debug, Args)]
pub(super) struct LocomoArgs {
    /// The benchmark's JSON file.
    file: PathBuf,
    /// Component to measure [default: the built-in provider].
    #[arg(long, value_name = "FILE")]
    plugin: Option<PathBuf>,
    /// Provider configuration, a JSON object.
    #[arg(long, default_value = "{}", value_name = "JSON")]
    config: String,
    /// Directory of an installed embedding model, such as `embeddings` in a host's data directory
    /// [default: no embeddings].
    #[arg(long, value_name = "DIR")]
    model_dir: Option<PathBuf>,
    /// Write the ranked IDs of every question to this file.
    #[arg(long, value_name = "FILE")]
    run: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) async fn run(command: EvalCommand) -> Result<()> {
    let EvalCommand::Locomo(args) = command;
    let text = argument::input(Some(&args.file))?;
    let conversations = read_locomo(&args.file.display().to_string(), &text)
        .map_err(|error| CliError::input("FILE", error))?;
    let config = argument::object("--config", Some(&args.config))?.unwrap_or_default();
    let scratch = tempfile::Builder::new().prefix("memhost-eval-").tempdir()?;
    let evaluation = measure(&args, scratch.path(), &conversations, config).await?;
    if let Some(file) = &args.run {
        let text = serde_json::to_string(&evaluation.run).map_err(CliError::host)?;
        std::fs::write(file, text).map_err(|error| CliError::file(file, &error))?;
    }
    line(&args.output.format().tell(&evaluation, "", || shown(&evaluation))?)
}

async fn measure(
    args: &LocomoArgs,
    directory: &std::path::Path,
    conversations: &[memhost_benchmark::Conversation],
    config: memhost_types::JsonObject,
) -> Result<Evaluation> {
    let mut options = ServiceOptions::new(directory.join("data"));
    options.compiled_dir = user_files::compiled_dir();
    options.sandbox.compiler = process::this_program()?;
    options.audit = Audit::Relaxed;
    options.embeddings =
        args.model_dir.clone().map_or(EmbeddingsOptions::Off, EmbeddingsOptions::InstalledIn);
    let mut provider = ProviderKey::parse(LOCAL_MARKDOWN_KEY).map_err(CliError::host)?;
    if let Some(file) = &args.plugin {
        let plugins = directory.join("plugins");
        provider = install(file, &plugins).await?.description().provider_key.clone();
        options.plugins_dir = Some(plugins);
    }
    let service = Service::open(options).await.map_err(CliError::host)?;
    // A refused file could have the built-in provider's key, which would be measured instead.
    args.plugin.as_deref().map_or(Ok(()), |file| check_admitted(&service, file))?;
    let steps: usize = conversations.iter().map(|c| c.turns.len() + c.questions.len()).sum();
    let bar = if std::io::stderr().is_terminal() {
        ProgressBar::new(steps as u64)
    } else {
        ProgressBar::hidden()
    };
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    let options = EvalOptions { provider, config };
    let evaluation = evaluate(&service, conversations, &options, |_| bar.inc(1)).await;
    bar.finish_and_clear();
    evaluation.map_err(CliError::host)
}

fn shown(evaluation: &Evaluation) -> String {
    let row = |name: &str, score: &Score| {
        let shown = [
            score.recall_5,
            score.recall_10,
            score.recall_20,
            score.hit_10,
            score.ndcg_10,
            score.mrr,
        ];
        let mut row = vec![name.to_owned(), score.questions.to_string()];
        row.extend(shown.iter().map(|value| format!("{value:.3}")));
        row
    };
    let mut rows: Vec<_> = evaluation
        .scores
        .categories
        .iter()
        .map(|(category, score)| row(category.as_str(), score))
        .collect();
    rows.push(row("all", &evaluation.scores.overall));
    let table = table(
        &["questions", "count", "recall@5", "recall@10", "recall@20", "hit@10", "nDCG@10", "MRR"],
        rows,
    );
    let (query, capture) = (evaluation.query, evaluation.capture);
    format!(
        "{} on LoCoMo\n\n{table}\n\nquery   p50 {:.2} ms, p99 {:.2} ms\ncapture p50 {:.2} ms, p99 \
         {:.2} ms",
        evaluation.provider, query.p50_ms, query.p99_ms, capture.p50_ms, capture.p99_ms
    )
}
