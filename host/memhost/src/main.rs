//! The binary `memhost`: parses the command line, runs the command, and reports an error with its
//! exit code.

use std::process::ExitCode;

use memhost_cli as cli;

fn main() -> ExitCode {
    if cli::is_hook() {
        return ExitCode::SUCCESS;
    }
    let cli = cli::parse();
    let done = cli::init_log(&cli).and_then(|_telemetry| cli::run(cli));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
