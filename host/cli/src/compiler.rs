//! Compiling components: a host starts this program again for each of them, so that it can be
//! limited and killed.

use clap::Args;

use super::CliError;
use memhost_sandbox::{CompileLimits, CompileSetup, Compiler, CompilerProcess, compile_component};

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
}

/// Compiles the component on the standard input.
pub(super) fn run(args: &CompileArgs) -> Result<(), CliError> {
    let setup = CompileSetup {
        memory_bytes: args.memory_bytes,
        cpu_seconds: args.cpu_seconds,
        measures_fuel: args.fuel,
    };
    Ok(compile_component(setup)?)
}

/// This program as the compiler, with the default limits.
pub(super) fn this_program() -> Result<Compiler, CliError> {
    within(CompileLimits::default())
}

/// This program as the compiler, with these limits.
pub(super) fn within(limits: CompileLimits) -> Result<Compiler, CliError> {
    let program = CompilerProcess::this_program().map_err(CliError::host)?;
    Ok(Compiler::Process(CompilerProcess { limits, ..program }))
}
