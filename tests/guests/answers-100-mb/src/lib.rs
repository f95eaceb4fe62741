//! `answers-100-mb` answers a query with one text of 100 MB. The query must fail with an error that
//! names the limit on results, and the host must not keep the text in memory.

use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference, answer};

struct Answers100Mb;

impl Guest for Answers100Mb {
    const KEY: &str = "answers-100-mb";

    fn query(_: &mut Reference, _: QueryRequest) -> Result<ContextBundle, Error> {
        Ok(answer([("large", "x".repeat(100_000_000))]))
    }
}

well_behaved::export!(Answers100Mb);
