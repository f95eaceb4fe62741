//! The binary: parse, run, say what went wrong.

use std::process::ExitCode;

use clap::Parser;
use memhost::cli::{self, Cli};

fn main() -> ExitCode {
    let cli = Cli::parse();
    cli::init_log(&cli);
    match cli::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
