//! The binary: parse, run, say what went wrong.

use std::process::ExitCode;

use memhost::cli;

fn main() -> ExitCode {
    let cli = cli::parse();
    cli::init_log(&cli);
    match cli::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
