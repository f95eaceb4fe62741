//! `memhost …`. Every command talks to a host: one that runs, over HTTP, or with `--data-dir` one that is opened for
//! the command, through the same routes.

mod args;
mod backend;
mod binding;
mod bridge;
mod budget;
mod check;
mod company;
mod config;
mod cost;
mod demo;
mod demo_documents;
mod directories;
mod doctor;
mod embeddings;
mod error;
mod evaluate;
mod hook;
mod job;
mod man;
mod mcp;
mod memory;
mod operation;
mod output;
mod page;
mod plugin;
mod profile;
mod secret;
mod serve;
mod session;
mod stats;
mod store;
mod tail;
mod telemetry;
mod token;
mod welcome;

use clap::{CommandFactory, Parser, Subcommand};

use self::backend::Backend;
pub use self::error::CliError;
pub use self::telemetry::Telemetry;

/// A host that lets a company of AI agents use any memory provider without trusting it.
#[derive(Debug, Parser)]
#[command(name = "memhost", version, propagate_version = true, after_help = EXIT_CODES)]
pub struct Cli {
    /// What is logged to standard error, such as `info` or `memhost=debug`.
    #[arg(long, global = true, env = "MEMHOST_LOG", value_name = "FILTER", help_heading = "Output")]
    log: Option<String>,
    /// Which of your profiles: a host, a token and a company under one name; see `memhost profile`.
    #[arg(long, global = true, env = "MEMHOST_PROFILE", value_name = "NAME", help_heading = "Host")]
    profile: Option<String>,
    #[command(flatten)]
    output: args::OutputArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 the operation failed, 2 wrong usage or input, 3 not found, \
                          4 not allowed, 5 the host cannot be reached or is busy.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what memhost does: capture this repository, ask, forget, and serve.
    Demo(demo::DemoArgs),
    /// Run a host.
    Serve(serve::ServeArgs),
    /// Write one record as it is: `record create`.
    Note(memory::NoteArgs),
    /// Find what fits a question: `record search`.
    Search(memory::SearchArgs),
    /// Take in something that happened: `record capture`.
    Capture(memory::CaptureArgs),
    /// Put a record right: `record update`.
    Correct(memory::CorrectArgs),
    /// Make records unreachable: `record delete`.
    Forget(memory::ForgetArgs),
    /// Show operations as they happen.
    Tail(tail::TailArgs),
    /// Draw how the last days went.
    Stats(stats::StatsArgs),
    /// What is remembered.
    #[command(subcommand)]
    Record(memory::RecordCommand),
    /// List all records: `record list`.
    #[command(hide = true)]
    List(memory::ListArgs),
    /// Show one record: `record show`.
    #[command(hide = true)]
    Get(memory::GetArgs),
    /// What was done, by whom, and how it ended.
    #[command(subcommand)]
    Operation(operation::OperationCommand),
    /// What captures left to be done.
    #[command(subcommand)]
    Job(job::JobCommand),
    /// What waits for a person before it counts.
    #[command(subcommand)]
    Review(job::ReviewCommand),
    /// What happened that memory should know of, and which binding took it.
    #[command(subcommand)]
    Hook(hook::HookCommand),
    /// What sessions and tools did.
    #[command(subcommand)]
    Event(hook::EventCommand),
    /// Which provider answers for whom.
    #[command(subcommand)]
    Binding(binding::BindingCommand),
    /// The providers of a host, and files that may become one.
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// What providers may put into their outgoing requests without seeing it.
    #[command(subcommand)]
    Secret(secret::SecretCommand),
    /// What memory costs.
    #[command(subcommand)]
    Cost(cost::CostCommand),
    /// Flat charges, such as subscriptions and invoices.
    #[command(subcommand)]
    Charge(cost::ChargeCommand),
    /// How much memory may cost.
    #[command(subcommand)]
    Budget(budget::BudgetCommand),
    /// How good memory is, out of the records of what was done with it.
    Evaluation(cost::EvaluationArgs),
    /// What was changed about a company's memory, by whom, newest first.
    Activity(operation::ActivityArgs),
    /// Who may call.
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// A company as a whole: retention, export, import, erasure.
    #[command(subcommand)]
    Company(company::CompanyCommand),
    /// The store of a host: check, compact, back up, restore.
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Look at a host, and say what to do.
    Doctor(doctor::DoctorArgs),
    /// The model that turns texts into vectors for providers that ask for it.
    #[command(subcommand)]
    Embeddings(embeddings::EmbeddingsCommand),
    /// Measure a provider's recall on a benchmark.
    #[command(subcommand)]
    Eval(evaluate::EvalCommand),
    /// Serve memory to an agent on standard input and output (Model Context Protocol).
    Mcp(mcp::McpArgs),
    /// Hooks of agent tools: Claude Code and Codex.
    #[command(subcommand)]
    AgentHooks(memhost_agent_hooks::AgentHooksCommand),
    /// Memory of other systems, in and out: claude-mem.
    #[command(subcommand)]
    Bridge(bridge::BridgeCommand),
    /// Your hosts: address, token and company of each under one name.
    #[command(subcommand, after_help = profile::ORDER)]
    Profile(profile::ProfileCommand),
    /// Print a manual page, or write all of them.
    Man(man::ManArgs),
    /// Print a completion script for a shell.
    Completions(man::CompletionsArgs),
}

/// Reads the command line; ends the process with a message where it will not do.
pub fn parse() -> Cli {
    Cli::parse()
}

/// Whether this is the call of a tool's hook; then all is done when this returns.
pub fn is_hook() -> bool {
    memhost_agent_hooks::is_hook(&std::env::args_os().collect::<Vec<_>>())
}

/// Sets up the log. Commands are quiet unless asked; a host says what it does.
///
/// # Errors
/// Where the configuration file names a collector and will not do.
pub fn init_log(cli: &Cli) -> Result<Telemetry, CliError> {
    use tracing_subscriber::EnvFilter;
    let (default, endpoint) = match &cli.command {
        Some(Command::Serve(args)) => ("memhost=info", args.otlp_endpoint()?),
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
    // Needs no runtime, and has no time to start one.
    if let Some(Command::AgentHooks(command)) = cli.command {
        return Ok(memhost_agent_hooks::run(command)?);
    }
    // Two threads a core: a guest that is inside a host call for a moment must not hold up everybody else's calls.
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get) * 2;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let runtime = runtime.map_err(CliError::runtime)?;
    match runtime.block_on(dispatch(cli)) {
        // Whoever reads our output has seen enough.
        Err(CliError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

async fn dispatch(cli: Cli) -> Result<(), CliError> {
    let Some(command) = cli.command else { return welcome::run(cli.profile).await };
    match command {
        Command::Demo(args) => demo::run(args).await,
        Command::Serve(args) => serve::run(args).await,
        Command::Note(args) => memory::note(args).await,
        Command::Search(args) => memory::search(args).await,
        Command::Capture(args) => memory::capture(args).await,
        Command::Correct(args) => memory::correct(args).await,
        Command::Forget(args) => memory::forget(args).await,
        Command::Tail(args) => tail::run(args).await,
        Command::Stats(args) => stats::run(args).await,
        Command::Record(command) => memory::run(command).await,
        Command::List(args) => memory::list(args).await,
        Command::Get(args) => memory::get(args).await,
        Command::Operation(command) => operation::run(command).await,
        Command::Job(command) => job::run(command).await,
        Command::Review(command) => job::review(command).await,
        Command::Hook(command) => hook::run(command).await,
        Command::Event(command) => hook::events(command).await,
        Command::Binding(command) => binding::run(command).await,
        Command::Plugin(command) => plugin::run(command).await,
        Command::Secret(command) => secret::run(command).await,
        Command::Cost(command) => cost::run(command).await,
        Command::Charge(command) => cost::charge(command).await,
        Command::Budget(command) => budget::run(command).await,
        Command::Evaluation(args) => cost::evaluation(args).await,
        Command::Activity(args) => operation::activity(args).await,
        Command::Token(command) => token::run(command).await,
        Command::Company(command) => company::run(command).await,
        Command::Store(command) => store::run(command).await,
        Command::Doctor(args) => doctor::run(args).await,
        Command::Embeddings(command) => embeddings::run(command),
        Command::Eval(command) => evaluate::run(command).await,
        Command::Mcp(args) => mcp::run(args).await,
        // Was done before there was a runtime.
        Command::AgentHooks(_) => Ok(()),
        Command::Bridge(command) => bridge::run(command).await,
        Command::Profile(command) => profile::run(command, cli.profile).await,
        Command::Man(args) => man::run(&args, Cli::command()),
        Command::Completions(args) => man::completions(&args, Cli::command()),
    }
}

#[cfg(test)]
mod tests;
