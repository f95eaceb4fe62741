//! `answers-too-many` answers every query with 2,000 snippets: more than was asked for and more
//! than a list may have. The query must fail with an error that says so.

use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference, answer};

struct AnswersTooMany;

impl Guest for AnswersTooMany {
    const KEY: &str = "answers-too-many";

    fn query(_: &mut Reference, _: QueryRequest) -> Result<ContextBundle, Error> {
        Ok(answer((0..2_000).map(|n| (n.to_string(), "one of too many"))))
    }
}

well_behaved::export!(AnswersTooMany);
