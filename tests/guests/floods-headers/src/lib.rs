//! `floods-headers` puts a million headers into one list in a query: small ones, or for `large` ones that double. It
//! never answers.

use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference, answer};

struct FloodsHeaders;

impl Guest for FloodsHeaders {
    const KEY: &str = "floods-headers";

    fn query(_: &mut Reference, request: QueryRequest) -> Result<ContextBundle, Error> {
        let fields = wasip2::http::types::Fields::new();
        let mut value = vec![b'x'; 100];
        for n in 0..1_000_000_u32 {
            if request.query == "large" {
                value.extend_from_within(..);
            }
            // It ignores errors of the host.
            let _ = fields.append(&format!("x-{n}"), &value);
        }
        Ok(answer([("flooded", "a million".to_owned())]))
    }
}

well_behaved::export!(FloodsHeaders);
