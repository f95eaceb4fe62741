//! `sleeps` sleeps for an hour in a query, in a call to the host: no limit on computing ends it.
//! The query must end at its deadline and occupy no thread meanwhile.

use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference, answer};

struct Sleeps;

impl Guest for Sleeps {
    const KEY: &str = "sleeps";

    fn query(_: &mut Reference, _: QueryRequest) -> Result<ContextBundle, Error> {
        std::thread::sleep(std::time::Duration::from_secs(3_600));
        Ok(answer([("slept", "for an hour")]))
    }
}

well_behaved::export!(Sleeps);
