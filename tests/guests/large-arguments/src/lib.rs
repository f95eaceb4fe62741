//! `large-arguments` passes more to the host than a call may transfer, in a query: a value of 64
//! MiB for `storage`, or for `list` a batch of a million deletions.

use well_behaved::sdk::storage::Batch;
use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference, answer};

struct LargeArguments;

impl Guest for LargeArguments {
    const KEY: &str = "large-arguments";

    fn query(_: &mut Reference, request: QueryRequest) -> Result<ContextBundle, Error> {
        let mut batch = Batch::new();
        match request.query.as_str() {
            "list" => (0..1_000_000_u32).for_each(|n| batch.delete_raw(n.to_be_bytes().to_vec())),
            _ => batch.put_raw(b"large".to_vec(), vec![b'x'; 64 << 20]),
        }
        let told = match batch.apply() {
            Ok(()) => "nothing".to_owned(),
            Err(error) => error.to_string(),
        };
        Ok(answer([("told", told)]))
    }
}

well_behaved::export!(LargeArguments);
