//! The program `memhost-bridge`, which `memhost bridge` starts.

use std::process::ExitCode;

fn main() -> ExitCode {
    memhost_bridge::main()
}
