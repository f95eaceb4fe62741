//! `remembers` keeps the number of its queries and the last one's text in memory, and answers both.
//! Memory must not be passed from one binding to another: a binding's first query is number 1 and
//! finds no last text.

use std::sync::Mutex;

use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference, answer};

static SEEN: Mutex<(u32, String)> = Mutex::new((0, String::new()));

struct Remembers;

impl Guest for Remembers {
    const KEY: &str = "remembers";

    fn query(_: &mut Reference, request: QueryRequest) -> Result<ContextBundle, Error> {
        let mut seen = SEEN
            .lock()
            .map_err(|_| Error::internal("a poisoned lock in an instance that lives on"))?;
        seen.0 += 1;
        let last = std::mem::replace(&mut seen.1, request.query);
        Ok(answer([("count", seen.0.to_string()), ("last", last)]))
    }
}

well_behaved::export!(Remembers);
