//! `grows-table` grows its table of functions in a query until it is refused, and answers by how
//! many elements. It must be refused at the limit on tables; the host's memory and the query must
//! not be affected.

#![allow(unsafe_code, reason = "the instruction comes from an object file, see build.rs")]

use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference, answer};

unsafe extern "C" {
    /// The size before, or -1 if growing was refused.
    safe fn grow_table(elements: u32) -> i32;
}

struct GrowsTable;

impl Guest for GrowsTable {
    const KEY: &str = "grows-table";

    fn query(_: &mut Reference, _: QueryRequest) -> Result<ContextBundle, Error> {
        let mut grown: u64 = 0;
        while grow_table(1_000) != -1 {
            grown += 1_000;
        }
        Ok(answer([("grown", grown.to_string())]))
    }
}

well_behaved::export!(GrowsTable);
