//! `memhost-bridge` itself, where tests find it: cargo gives a test the programs of its own package
//! only.

use std::process::ExitCode;

fn main() -> ExitCode {
    memhost_bridge::main()
}
