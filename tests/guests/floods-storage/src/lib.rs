//! `floods-storage` writes to storage in a query until it is refused, and answers how much it wrote
//! and the error. It must be refused at its grant, other bindings must not be affected, and
//! deleting must still be possible.

use well_behaved::sdk::storage::Batch;
use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference, answer};

struct FloodsStorage;

impl Guest for FloodsStorage {
    const KEY: &str = "floods-storage";

    fn describe() -> Description {
        let description = well_behaved::describe(Self::KEY);
        Description { permissions: Vec::new(), ..description }
            .require(Permission::Storage(8 << 20), "To be flooded")
    }

    fn query(_: &mut Reference, _: QueryRequest) -> Result<ContextBundle, Error> {
        let value = vec![b'x'; 256 << 10];
        for n in 0_u64.. {
            let mut batch = Batch::new();
            batch.put_raw(format!("flood {n:020}").into_bytes(), value.clone());
            if let Err(error) = batch.apply() {
                let written = n * value.len() as u64;
                return Ok(answer([
                    ("written", written.to_string()),
                    ("refused", error.to_string()),
                ]));
            }
        }
        Err(Error::internal("storage has no end"))
    }
}

well_behaved::export!(FloodsStorage);
