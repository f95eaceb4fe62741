//! `reads-environment` answers a query with all that it finds out about its environment: one
//! snippet for each attempt, with the result, or the error after `refused: `. It must contain
//! nothing of the host's environment.

use std::fmt::Debug;
use std::fs;

use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference, answer};

struct ReadsEnvironment;

impl Guest for ReadsEnvironment {
    const KEY: &str = "reads-environment";

    fn query(_: &mut Reference, _: QueryRequest) -> Result<ContextBundle, Error> {
        let names = |path| {
            fs::read_dir(path)
                .map(|all| all.flatten().map(|entry| entry.path()).collect::<Vec<_>>())
        };
        Ok(answer([
            ("variables", format!("{:?}", std::env::vars_os().collect::<Vec<_>>())),
            ("arguments", format!("{:?}", std::env::args_os().collect::<Vec<_>>())),
            ("current-directory", text(std::env::current_dir())),
            ("root", text(names("/"))),
            ("here", text(names("."))),
            ("data", text(names("/data"))),
            ("proc", text(names("/proc"))),
            ("own-environ", text(fs::read_to_string("/proc/self/environ"))),
            ("passwd", text(fs::read_to_string("/etc/passwd"))),
            ("hostname", text(fs::read_to_string("/etc/hostname"))),
            ("input", text(std::io::read_to_string(std::io::stdin()))),
        ]))
    }
}

fn text(finding: std::io::Result<impl Debug>) -> String {
    finding.map_or_else(|error| format!("refused: {error}"), |found| format!("{found:?}"))
}

well_behaved::export!(ReadsEnvironment);
