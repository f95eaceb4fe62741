//! `eats-memory` allocates and writes memory in a query until that fails, and aborts. The query
//! must end with an error that names the memory limit; the host and other guests must keep their
//! memory.

use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference};

struct EatsMemory;

impl Guest for EatsMemory {
    const KEY: &str = "eats-memory";

    fn query(_: &mut Reference, _: QueryRequest) -> Result<ContextBundle, Error> {
        let mut eaten: Vec<Vec<u8>> = Vec::new();
        loop {
            eaten.push(std::hint::black_box(vec![1; 1 << 20]));
        }
    }
}

well_behaved::export!(EatsMemory);
