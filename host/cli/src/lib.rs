//! `memhost …`. Every command talks to a host: one that runs, over HTTP, or with `--data-dir` one
//! that is opened for the command, through the same routes.

mod answer;
mod args;
mod argument;
mod backend;
mod binding;
mod bridge;
mod budget;
mod check;
mod cluster;
mod company;
mod config;
mod connection;
mod context;
mod cost;
mod demo;
mod demo_documents;
mod difference;
mod embeddings;
mod error;
mod evaluate;
mod flags;
mod help;
mod hook;
mod job;
mod man;
mod mcp;
mod memory;
mod operation;
mod outgoing;
mod output;
mod page;
mod plugin;
mod probe;
mod process;
mod secret;
mod serve;
mod session;
mod signals;
mod stats;
mod store;
mod tail;
mod telemetry;
mod texts;
mod token;
mod user_files;
mod welcome;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use self::backend::Backend;
#[cfg(feature = "fuzzing")]
pub use self::config::read_for_fuzzing;
pub use self::error::CliError;
use self::error::Result;
pub use self::telemetry::Telemetry;
use memhost_files::private;

/// The allocator of the program; a process that embeds the host has its own. Many operations are
/// begun by one thread and ended by another, and glibc's allocator is slow at that.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The allocator's settings, which `_RJEM_MALLOC_CONF` overrides. Freed pages go back to the system
/// after a second; jemalloc's own ten seconds make the peak of a busy host a fifth higher.
#[used]
#[unsafe(export_name = "_rjem_malloc_conf")]
#[allow(unsafe_code, reason = "jemalloc looks for a variable of this name and type")]
static SETTINGS: Settings = Settings(c"dirty_decay_ms:1000".as_ptr());

#[repr(transparent)]
struct Settings(*const std::ffi::c_char);

// SAFETY: it points to a constant.
#[allow(unsafe_code, reason = "a pointer to a constant may be shared")]
unsafe impl Sync for Settings {}

/// Shared memory for a company of AI agents, with sandboxed providers.
#[derive(Debug, Parser)]
#[command(name = "memhost", version, after_help = EXIT_CODES)]
pub struct Cli {
    /// Log filter for standard error, such as `info` or `memhost=debug`.
    #[arg(
        long,
        global = true,
        env = "MEMHOST_LOG",
        value_name = "FILTER",
        help_heading = "Output"
    )]
    log: Option<String>,
    /// The context to use: a host, a token and a company under one name. See `memhost context`.
    #[arg(
        long,
        global = true,
        env = "MEMHOST_CONTEXT",
        value_name = "NAME",
        help_heading = "Host"
    )]
    context: Option<String>,
    #[command(flatten)]
    output: args::OutputArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

const EXIT_CODES: &str = "Exit codes: 0 success, 1 operation or check failed, 2 invalid usage or \
                          input or a conflict, 3 not found, 4 permission denied or budget used up, \
                          5 host unreachable or busy, 6 the store of this process failed: start it \
                          again.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a demonstration: capture this repository, search it, forget one record, then serve.
    Demo(demo::DemoArgs),
    /// Run a host.
    Serve(serve::ServeArgs),
    /// Create a record (short for `record create`).
    Note(memory::NoteArgs),
    /// Search records (short for `record search`).
    Search(memory::SearchArgs),
    /// Capture text and let the provider extract records (short for `record capture`).
    Capture(memory::CaptureArgs),
    /// Correct a record (short for `record update`).
    Correct(memory::CorrectArgs),
    /// Forget records (short for `record delete`).
    Forget(memory::ForgetArgs),
    /// Stream operations as they happen.
    Tail(tail::TailArgs),
    /// Draw daily statistics.
    Stats(stats::StatsArgs),
    /// Manage records.
    #[command(subcommand)]
    Record(memory::RecordCommand),
    /// View the operation log.
    #[command(subcommand)]
    Operation(operation::OperationCommand),
    /// Manage extraction jobs.
    #[command(subcommand)]
    Job(job::JobCommand),
    /// Review pending records.
    #[command(subcommand)]
    Review(job::ReviewCommand),
    /// Send hooks, and manage their deliveries to bindings.
    #[command(subcommand)]
    Hook(hook::HookCommand),
    /// View and send session and tool events.
    #[command(subcommand)]
    Event(hook::EventCommand),
    /// Manage bindings: the provider that serves a company or an agent.
    #[command(subcommand)]
    Binding(binding::BindingCommand),
    /// Manage, build and test plugins (memory providers).
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// Manage secrets that the host inserts into providers' outgoing requests.
    #[command(subcommand)]
    Secret(secret::SecretCommand),
    /// View the cost of operations.
    #[command(subcommand)]
    Cost(cost::CostCommand),
    /// Manage flat charges, such as subscriptions and invoices.
    #[command(subcommand)]
    Charge(cost::ChargeCommand),
    /// Manage budgets.
    #[command(subcommand)]
    Budget(budget::BudgetCommand),
    /// Show quality metrics computed from the operation log.
    #[command(subcommand)]
    Evaluation(cost::EvaluationCommand),
    /// Show what left the host: outgoing requests by origin.
    #[command(subcommand)]
    Outgoing(outgoing::OutgoingCommand),
    /// Show administrative changes, newest first.
    #[command(subcommand)]
    Activity(operation::ActivityCommand),
    /// Manage access tokens.
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Manage companies: retention, export, import, restoring, erasure.
    #[command(subcommand)]
    Company(company::CompanyCommand),
    /// Verify, compact, back up and restore a host's store.
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Show the hosts that share a database.
    #[command(subcommand)]
    Cluster(cluster::ClusterCommand),
    /// Diagnose a host and suggest fixes.
    Doctor(store::DoctorArgs),
    /// Succeed if a host answers; for service managers and containers.
    Probe(probe::ProbeArgs),
    /// Manage the embedding model that providers may use.
    #[command(subcommand)]
    Embeddings(embeddings::EmbeddingsCommand),
    /// Measure a provider's recall on a benchmark.
    #[command(subcommand)]
    Eval(evaluate::EvalCommand),
    /// Run a Model Context Protocol server on standard input and output.
    Mcp(mcp::McpArgs),
    /// Hooks of agent tools, such as Claude Code.
    #[command(subcommand)]
    AgentHooks(memhost_agent_hooks::AgentHooksCommand),
    /// Import from claude-mem, memsearch and Memori, and export to the first two.
    #[command(subcommand)]
    Bridge(bridge::BridgeCommand),
    /// Manage contexts: a host, a token and a company under one name.
    #[command(subcommand, after_help = context::ORDER)]
    Context(context::ContextCommand),
    /// Print a manual page, or write all manual pages.
    Man(man::ManArgs),
    /// Print a completion script for a shell.
    Completions(man::CompletionsArgs),
    /// Compile one component: a host starts this for each, and gives it the component.
    #[command(hide = true)]
    CompileComponent(process::CompileArgs),
    /// Append the built-in provider, compiled, to a program's file, for its first start.
    #[command(hide = true)]
    CarryCompiled(process::CarryArgs),
}

/// Parses the command line; prints a message and exits where it is invalid.
pub fn parse() -> Cli {
    let command = help::grouped(flags::with_negative_numbers(Cli::command()));
    let matches = command
        .clone()
        .try_get_matches()
        .unwrap_or_else(|error| flags::exit(command.clone(), error));
    flags::remember(&command, &matches);
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Why a command line is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// It has a command or a flag that there is not.
    #[error("{0}")]
    Unknown(String),
    /// Something that it needs is missing, or a value is not valid.
    #[error("{0}")]
    Incomplete(String),
}

/// Whether a command line is taken, the program's name first. Nothing is run. For tests of
/// documents.
///
/// # Errors
/// What is wrong, as a person is told it.
pub fn check_line<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<(), LineError> {
    use clap::error::ErrorKind;
    static GRAMMAR: std::sync::OnceLock<clap::Command> = std::sync::OnceLock::new();
    let grammar =
        GRAMMAR.get_or_init(|| help::grouped(flags::with_negative_numbers(Cli::command())));
    let Err(error) = grammar.clone().try_get_matches_from(words) else { return Ok(()) };
    let said = error.to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(()),
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => Err(LineError::Unknown(said)),
        _ => Err(LineError::Incomplete(said)),
    }
}

/// Whether this process is a hook of an agent's tool; the hook has then run.
pub fn is_hook() -> bool {
    memhost_agent_hooks::is_hook(&std::env::args_os().collect::<Vec<_>>())
}

/// Sets up the log. `serve` logs at `info`, all other commands only errors.
///
/// # Errors
/// Where the configuration file is invalid, or the exporter does not start.
pub fn init_log(cli: &Cli) -> Result<Telemetry, CliError> {
    use tracing_subscriber::EnvFilter;
    let (default, endpoint) = match &cli.command {
        Some(Command::Serve(args)) => ("memhost=info", args.otlp_endpoint()?),
        _ => ("memhost=error", None),
    };
    let filter = match cli.log.as_deref().filter(|filter| !filter.is_empty()) {
        Some(filter) => telemetry::filter(filter)?,
        None => EnvFilter::new(default),
    };
    telemetry::init(filter, endpoint.as_deref())
}

/// Runs a command.
///
/// # Errors
/// Why the command failed, with its exit code.
pub fn run(cli: Cli) -> Result<(), CliError> {
    if !makes_files_for_others(cli.command.as_ref()) {
        private::restrict_process();
    }
    // A hook needs no runtime and must start fast.
    if let Some(Command::AgentHooks(command)) = cli.command {
        return Ok(memhost_agent_hooks::run(command)?);
    }
    // Its limits leave no room for a runtime.
    if let Some(Command::CompileComponent(args)) = &cli.command {
        return process::compile(args);
    }
    if let Some(Command::CarryCompiled(args)) = &cli.command {
        return process::carry(args);
    }
    // Two threads for each core: a guest that blocks in a host call must not delay other calls.
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get) * 2;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let runtime = runtime.map_err(CliError::runtime)?;
    match runtime.block_on(dispatch(cli)) {
        // The reader of the output closed the pipe.
        Err(CliError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

/// Manual pages and the project of a new provider hold nothing of a company, and other users read
/// them.
fn makes_files_for_others(command: Option<&Command>) -> bool {
    matches!(command, Some(Command::Man(_) | Command::Plugin(plugin::PluginCommand::New(_))))
}

async fn dispatch(cli: Cli) -> Result<()> {
    let Some(command) = cli.command else { return welcome::run(cli.context).await };
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
        Command::Evaluation(command) => cost::evaluation(command).await,
        Command::Outgoing(command) => outgoing::run(command).await,
        Command::Activity(command) => operation::activity(command).await,
        Command::Token(command) => token::run(command).await,
        Command::Company(command) => company::run(command).await,
        Command::Store(command) => store::run(command).await,
        Command::Cluster(command) => cluster::run(command).await,
        Command::Doctor(args) => store::doctor(args).await,
        Command::Probe(args) => probe::run(args).await,
        Command::Embeddings(command) => embeddings::run(command),
        Command::Eval(command) => evaluate::run(command).await,
        Command::Mcp(args) => mcp::run(args).await,
        // Ran before the runtime was started.
        Command::AgentHooks(_) | Command::CompileComponent(_) | Command::CarryCompiled(_) => Ok(()),
        Command::Bridge(command) => bridge::run(command).await,
        Command::Context(command) => context::run(command, cli.context).await,
        Command::Man(args) => man::run(&args, Cli::command()),
        Command::Completions(args) => man::completions(&args, Cli::command()),
    }
}

#[cfg(test)]
mod tests;
