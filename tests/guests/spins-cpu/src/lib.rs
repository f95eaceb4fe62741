//! `spins-cpu` computes for as many milliseconds as the query's text says, by the wall clock, then
//! answers how long it was. It must be ended when its budget is spent, and other guests must run
//! meanwhile.

use std::time::{Duration, Instant};

use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference, answer};

struct SpinsCpu;

impl Guest for SpinsCpu {
    const KEY: &str = "spins-cpu";

    fn query(_: &mut Reference, request: QueryRequest) -> Result<ContextBundle, Error> {
        let millis = request
            .query
            .trim()
            .parse()
            .map_err(|_| Error::invalid("query", "milliseconds are needed"))?;
        let (start, time) = (Instant::now(), Duration::from_millis(millis));
        while start.elapsed() < time {
            // About 50 us between two readings of the clock, which are calls to the host.
            for n in 0..100_000_u32 {
                std::hint::black_box(n);
            }
        }
        Ok(answer([("spun", start.elapsed().as_millis().to_string())]))
    }
}

well_behaved::export!(SpinsCpu);
