//! `floods-log` prints 10 MB to standard error and as much to standard output in every query, with
//! escape sequences for a terminal. The query must succeed; the log must be cut, and must not
//! contain the sequences.

use well_behaved::sdk::{Provider, types::*};
use well_behaved::{Guest, Reference};

struct FloodsLog;

impl Guest for FloodsLog {
    const KEY: &str = "floods-log";

    fn query(reference: &mut Reference, request: QueryRequest) -> Result<ContextBundle, Error> {
        let line = format!("\x1b[31m{}\x07", "flood ".repeat(166));
        for _ in 0..10_000 {
            eprintln!("{line}");
            println!("{line}");
        }
        reference.query(request)
    }
}

well_behaved::export!(FloodsLog);
