//! `memhost …`. Every command talks to a host: one that runs, over HTTP, or with `--data-dir` one that is opened for
//! the command, through the same routes.

mod adapter;
mod backend;
mod binding;
mod company;
mod config;
mod cost;
mod demo;
mod demo_documents;
mod doctor;
mod error;
mod evaluate;
mod hook;
mod job;
mod mcp;
mod memory;
mod operation;
mod output;
mod page;
mod plugin;
mod secret;
mod serve;
mod telemetry;
mod token;

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};

use self::backend::Backend;
pub use self::error::CliError;
pub use self::telemetry::Telemetry;

/// A host that lets a company of AI agents use any memory provider without trusting it.
#[derive(Debug, Parser)]
#[command(name = "memhost", version, propagate_version = true, after_help = EXIT_CODES)]
pub struct Cli {
    /// What is logged to standard error, such as `info` or `memhost=debug`.
    #[arg(long, global = true, env = "MEMHOST_LOG", value_name = "FILTER")]
    log: Option<String>,
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 the operation failed, 2 wrong usage or input, 3 not found, \
                          4 not allowed, 5 the host cannot be reached or is busy.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what memhost does: capture this repository, ask, forget, and serve.
    Demo(demo::DemoArgs),
    /// Run a host.
    Serve(serve::ServeArgs),
    /// Take in something that happened.
    Capture(memory::CaptureArgs),
    /// Write one record as it is.
    Note(memory::NoteArgs),
    /// Find what fits a question.
    Search(memory::SearchArgs),
    /// List all records, page by page.
    List(memory::ListArgs),
    /// Show one record.
    Get(memory::GetArgs),
    /// Make records unreachable.
    Forget(memory::ForgetArgs),
    /// Put a record right.
    Correct(memory::CorrectArgs),
    /// Which provider answers for whom.
    #[command(subcommand)]
    Binding(binding::BindingCommand),
    /// What providers may put into their outgoing requests without seeing it.
    #[command(subcommand)]
    Secret(secret::SecretCommand),
    /// Who may call.
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// What happened that memory should know of, and which binding took it.
    #[command(subcommand)]
    Hook(hook::HookCommand),
    /// What captures left to be done.
    #[command(subcommand)]
    Job(job::JobCommand),
    /// What waits for a person before it counts.
    #[command(subcommand)]
    Review(job::ReviewCommand),
    /// What memory costs.
    #[command(subcommand)]
    Cost(cost::CostCommand),
    /// How much memory may cost.
    #[command(subcommand)]
    Budget(cost::BudgetCommand),
    /// How good memory is, out of the records of what was done with it.
    Evaluation(cost::EvaluationArgs),
    /// What sessions and tools did.
    #[command(subcommand)]
    Event(hook::EventCommand),
    /// A company as a whole: retention, export, import, erasure.
    #[command(subcommand)]
    Company(company::CompanyCommand),
    /// What was done, by whom, and how it ended.
    #[command(subcommand)]
    Operation(operation::OperationCommand),
    /// What was changed about a company's memory, by whom, newest first.
    Activity(operation::ActivityArgs),
    /// The providers of a host, and files that may become one.
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// Measure a provider's recall on a benchmark.
    #[command(subcommand)]
    Eval(evaluate::EvalCommand),
    /// Serve memory to an agent on standard input and output (Model Context Protocol).
    Mcp(mcp::McpArgs),
    /// Look at a host, and say what to do.
    Doctor(doctor::DoctorArgs),
    /// The store of a host: check, compact, back up, restore.
    #[command(subcommand)]
    Store(company::StoreCommand),
    /// For the hooks of agents' tools: Claude Code and Codex.
    #[command(subcommand)]
    Adapter(adapter::AdapterCommand),
    /// Print a completion script for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

/// Which host.
#[derive(Debug, Clone, Args)]
struct HostArgs {
    /// A host that runs.
    #[arg(long, env = "MEMHOST_URL", default_value = "http://127.0.0.1:7600", value_name = "URL")]
    url: String,
    /// Its operator's token.
    #[arg(long, env = "MEMHOST_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<String>,
    /// Instead of a running host: a data directory, opened for this command.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// With --data-dir: where its plugins are.
    #[arg(long, requires = "data_dir", value_name = "DIR")]
    plugins_dir: Option<PathBuf>,
    /// With --data-dir: the host's configuration file.
    #[arg(long, env = "MEMHOST_CONFIG", value_name = "FILE")]
    host_config: Option<PathBuf>,
    /// Print the host's JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// Whose memory.
#[derive(Debug, Clone, Args)]
struct CompanyArgs {
    /// The company.
    #[arg(long, short, env = "MEMHOST_COMPANY", value_name = "ID")]
    company: String,
    #[command(flatten)]
    host: HostArgs,
}

/// Whose memory, and in which scope.
#[derive(Debug, Clone, Args)]
struct ScopeArgs {
    #[command(flatten)]
    company: CompanyArgs,
    /// The agent that acts.
    #[arg(long, env = "MEMHOST_AGENT", value_name = "ID")]
    agent: Option<String>,
    /// A binding instead of the one that is active.
    #[arg(long, value_name = "KEY")]
    binding: Option<String>,
    /// The project, as context.
    #[arg(long, value_name = "ID")]
    project: Option<String>,
    /// The issue, as context.
    #[arg(long, value_name = "ID")]
    issue: Option<String>,
    /// The run, as context.
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// An external or user identity.
    #[arg(long, value_name = "ID")]
    subject: Option<String>,
    /// The session.
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// An explicit partition.
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
}

/// Reads the command line; ends the process with a message where it will not do.
pub fn parse() -> Cli {
    Cli::parse()
}

/// Whether this is the call of a tool's hook; then all is done when this returns.
pub fn is_hook() -> bool {
    adapter::is_hook(&std::env::args_os().collect::<Vec<_>>())
}

/// Sets up the log. Commands are quiet unless asked; a host says what it does.
///
/// # Errors
/// Where the configuration file names a collector and will not do.
pub fn init_log(cli: &Cli) -> Result<Telemetry, CliError> {
    use tracing_subscriber::EnvFilter;
    let (default, endpoint) = match &cli.command {
        Command::Serve(args) => ("memhost=info", args.otlp_endpoint()?),
        _ => ("memhost=error", None),
    };
    let filter = EnvFilter::try_new(cli.log.as_deref().unwrap_or(default)).unwrap_or_else(|_| EnvFilter::new(default));
    telemetry::init(filter, endpoint.as_deref())
}

/// Runs a command to its end.
///
/// # Errors
/// What went wrong, with its exit code.
pub fn run(cli: Cli) -> Result<(), CliError> {
    if let Command::Completions { shell } = cli.command {
        clap_complete::generate(shell, &mut Cli::command(), "memhost", &mut std::io::stdout());
        return Ok(());
    }
    // Needs no runtime, and has no time to start one.
    if let Command::Adapter(command) = cli.command {
        return adapter::run(command);
    }
    // Two threads a core: a guest that is inside a host call for a moment must not hold up everybody else's calls.
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get) * 2;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let runtime = runtime.map_err(CliError::runtime)?;
    let done = runtime.block_on(async {
        match cli.command {
            Command::Demo(args) => demo::run(args).await,
            Command::Serve(args) => serve::run(args).await,
            Command::Capture(args) => memory::capture(args).await,
            Command::Note(args) => memory::note(args).await,
            Command::Search(args) => memory::search(args).await,
            Command::List(args) => memory::list(args).await,
            Command::Get(args) => memory::get(args).await,
            Command::Forget(args) => memory::forget(args).await,
            Command::Correct(args) => memory::correct(args).await,
            Command::Binding(command) => binding::run(command).await,
            Command::Secret(command) => secret::run(command).await,
            Command::Token(command) => token::run(command).await,
            Command::Hook(command) => hook::run(command).await,
            Command::Job(command) => job::run(command).await,
            Command::Review(command) => job::review(command).await,
            Command::Cost(command) => cost::run(command).await,
            Command::Budget(command) => cost::budget(command).await,
            Command::Evaluation(args) => cost::evaluation(args).await,
            Command::Event(command) => hook::events(command).await,
            Command::Company(command) => company::run(command).await,
            Command::Operation(command) => operation::run(command).await,
            Command::Activity(args) => operation::activity(args).await,
            Command::Plugin(command) => plugin::run(command).await,
            Command::Eval(command) => evaluate::run(command).await,
            Command::Mcp(args) => mcp::run(args).await,
            Command::Doctor(args) => doctor::run(args).await,
            Command::Store(command) => company::store(command).await,
            Command::Adapter(_) | Command::Completions { .. } => Ok(()),
        }
    });
    match done {
        // Whoever reads our output has seen enough.
        Err(CliError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_is_as_it_was() {
        // Not as wide as whatever terminal the test runs in.
        insta::assert_snapshot!(Cli::command().term_width(100).render_help());
    }
}
