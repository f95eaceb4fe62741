//! `traps` panics in a query for `trap`, with the text "a secret in a panic" on standard error. That query must end
//! with an error that does not hold the text; the next query must get a fresh instance and succeed.

use well_behaved::sdk::{Provider, types::*};
use well_behaved::{Guest, Keeper};

struct Traps;

impl Guest for Traps {
    const KEY: &str = "traps";

    fn query(keeper: &mut Keeper, request: QueryRequest) -> Result<ContextBundle, Error> {
        assert_ne!(request.query, "trap", "a secret in a panic");
        keeper.query(request)
    }
}

well_behaved::export!(Traps);
