//! `hoards-handles` takes one resource of the host after the other in a query and releases none:
//! pollables, or for `fields` header lists, or for `streams` standard output again and again. It
//! never answers.

use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference, answer};

struct HoardsHandles;

impl Guest for HoardsHandles {
    const KEY: &str = "hoards-handles";

    fn query(_: &mut Reference, request: QueryRequest) -> Result<ContextBundle, Error> {
        for _ in 0..10_000_000 {
            match request.query.as_str() {
                "fields" => std::mem::forget(wasip2::http::types::Fields::new()),
                "streams" => std::mem::forget(wasip2::cli::stdout::get_stdout()),
                _ => {
                    std::mem::forget(wasip2::clocks::monotonic_clock::subscribe_duration(u64::MAX))
                }
            }
        }
        Ok(answer([("hoarded", "ten million".to_owned())]))
    }
}

well_behaved::export!(HoardsHandles);
