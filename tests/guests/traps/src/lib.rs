//! `traps` panics in a query for `trap`, with the text "a secret in a panic" on standard error.
//! That query must end with an error that does not contain the text; the next query must get a
//! fresh instance and succeed.

use well_behaved::sdk::{Provider, types::*};
use well_behaved::{Guest, Reference};

struct Traps;

impl Guest for Traps {
    const KEY: &str = "traps";

    fn query(reference: &mut Reference, request: QueryRequest) -> Result<ContextBundle, Error> {
        assert_ne!(request.query, "trap", "a secret in a panic");
        reference.query(request)
    }
}

well_behaved::export!(Traps);
