//! `loops-in-call` computes forever in a query. The query must end at its limit with an error that
//! names it, no other call may wait for it, and the next call must get a fresh instance.

use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference};

struct LoopsInCall;

impl Guest for LoopsInCall {
    const KEY: &str = "loops-in-call";

    fn query(_: &mut Reference, _: QueryRequest) -> Result<ContextBundle, Error> {
        loop {
            std::hint::black_box(());
        }
    }
}

well_behaved::export!(LoopsInCall);
