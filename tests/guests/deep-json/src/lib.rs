//! `deep-json` answers a query with metadata of 10,000 nested arrays. The record must be
//! answered without it, and the host's stack must not overflow.

use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference};

struct DeepJson;

impl Guest for DeepJson {
    const KEY: &str = "deep-json";

    fn query(_: &mut Reference, _: QueryRequest) -> Result<ContextBundle, Error> {
        let metadata = format!("{{\"deep\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
        Ok(vec![Snippet { metadata: Some(metadata), ..Snippet::new("deep", "below") }].into())
    }
}

well_behaved::export!(DeepJson);
