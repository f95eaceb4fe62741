//! Other processes: the one that compiles a component, which is this program started again so that
//! it can be limited and killed; and the one that started this program, as seen through standard
//! input.

use std::io::{BufRead, ErrorKind, Read};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use clap::Args;
use tokio::sync::oneshot;

use super::output::line;
use super::{CliError, Result};
use memhost_sandbox::{
    CompileLimits, CompileSetup, Compiler, CompilerProcess, carry_compiled, compile_component,
};

/// The longest first line, in bytes.
const MAX_LINE: u64 = 4_096;
/// How long the first line may take.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(super) struct CompileArgs {
    /// Bytes of address space that it may use.
    #[arg(long)]
    memory_bytes: u64,
    /// Seconds of computing that it may use, on all cores together.
    #[arg(long)]
    cpu_seconds: u64,
    /// Make code that counts its instructions.
    #[arg(long)]
    fuel: bool,
    /// Take the priority of serving.
    #[arg(long)]
    urgent: bool,
    /// Check a configuration instead: a list of a schema and a configuration.
    #[arg(long)]
    config: bool,
}

#[derive(Debug, Args)]
pub(super) struct CarryArgs {
    /// Program file, such as a `memhost` that was just built; stripping it later removes the code.
    #[arg(value_name = "PROGRAM")]
    program: PathBuf,
}

/// Compiles the built-in provider for usual processors and appends the code to a program's file.
pub(super) fn carry(args: &CarryArgs) -> Result<()> {
    let component = memhost_builtin::local_markdown()?;
    let bytes = carry_compiled(&args.program, &component).map_err(CliError::host)?;
    line(&format!("{} carries {bytes} bytes of compiled code", args.program.display()))
}

/// Compiles the component on the standard input, or checks the configuration there.
pub(super) fn compile(args: &CompileArgs) -> Result<()> {
    let setup = CompileSetup {
        memory_bytes: args.memory_bytes,
        cpu_seconds: args.cpu_seconds,
        measures_fuel: args.fuel,
        is_urgent: args.urgent,
        checks_config: args.config,
    };
    Ok(compile_component(setup)?)
}

/// This program as the compiler, with the default limits.
pub(super) fn this_program() -> Result<Compiler> {
    within(CompileLimits::default())
}

/// This program as the compiler, with these limits.
pub(super) fn within(limits: CompileLimits) -> Result<Compiler> {
    let program = CompilerProcess::this_program().map_err(CliError::host)?;
    Ok(Compiler::Process(CompilerProcess { limits, ..program }))
}

/// The first line of standard input, without its end.
pub(super) fn first_line() -> Result<String> {
    let wrong = |message: String| CliError::input("--token-from-stdin", message);
    let (told, answer) = mpsc::channel();
    // A thread of its own: a read of standard input cannot be given up, and the process ends
    // without it.
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().lock().take(MAX_LINE).read_line(&mut line);
        let _ = told.send(read.map(|_| line));
    });
    let read = answer.recv_timeout(LONGEST_WAIT).map_err(|_| {
        let seconds = LONGEST_WAIT.as_secs();
        wrong(format!(
            "no line came on standard input within {seconds} seconds; write the token \
                       and a line break"
        ))
    })?;
    let line = read.map_err(|error| {
        wrong(format!("standard input cannot be read: {error}; write the token as its first line"))
    })?;
    match line.strip_suffix('\n') {
        Some(token) => Ok(token.trim_end_matches('\r').to_owned()),
        None => Err(wrong(format!(
            "standard input has no whole line of at most {MAX_LINE} bytes; write the token and a \
             line break"
        ))),
    }
}

/// Watches standard input from now on, and resolves when it is closed. What comes there is not
/// looked at.
pub(super) fn input_closed() -> impl Future<Output = ()> + Send + 'static {
    let (closed, wait) = oneshot::channel();
    // A thread of its own: the runtime waits for blocking tasks before a process ends, and this one
    // may never end.
    std::thread::spawn(move || {
        let (mut input, mut buffer) = (std::io::stdin().lock(), [0; 4_096]);
        loop {
            match input.read(&mut buffer) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        // Nobody may wait any more.
        let _ = closed.send(());
    });
    async {
        // The other end is gone only where the thread has ended.
        let _ = wait.await;
        tracing::info!("standard input was closed; the host stops");
    }
}
