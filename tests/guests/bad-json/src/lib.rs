//! `bad-json` answers a query with metadata that is not JSON; for `array` with JSON that is not an
//! object, for `surrogate` with half a character, for `large` with 300 KiB. The record must
//! be answered without it.

use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference};

struct BadJson;

impl Guest for BadJson {
    const KEY: &str = "bad-json";

    fn query(_: &mut Reference, request: QueryRequest) -> Result<ContextBundle, Error> {
        let metadata = match request.query.as_str() {
            "array" => "[1]".to_owned(),
            "surrogate" => r#"{"half":"\ud800"}"#.to_owned(),
            "large" => format!("{{\"large\":\"{}\"}}", "x".repeat(300 << 10)),
            _ => "{not json".to_owned(),
        };
        Ok(vec![Snippet { metadata: Some(metadata), ..Snippet::new("bad", "with bad metadata") }]
            .into())
    }
}

well_behaved::export!(BadJson);
