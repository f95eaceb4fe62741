//! `memhost` itself, where tests find it: cargo gives a test the programs of its own package only.

use std::process::ExitCode;

use memhost_cli as cli;

fn main() -> ExitCode {
    if cli::is_hook() {
        return ExitCode::SUCCESS;
    }
    let cli = cli::parse();
    match cli::init_log(&cli).and_then(|_telemetry| cli::run(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
