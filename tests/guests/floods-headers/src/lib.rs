//! `floods-headers` puts a million headers into one list in a query: small ones, or for `large`
//! ones that double. For `lists` it keeps a thousand lists of 60,000 bytes, for `copies` a thousand
//! copies of one, and for `methods` a thousand requests whose method has a megabyte. It never
//! answers.

use wasip2::http::types::{Fields, Method, OutgoingRequest};
use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference, answer};

/// Fewer than the handles that an instance may have.
const MANY: usize = 1_000;

struct FloodsHeaders;

impl Guest for FloodsHeaders {
    const KEY: &str = "floods-headers";

    fn query(_: &mut Reference, request: QueryRequest) -> Result<ContextBundle, Error> {
        let fields = Fields::new();
        match request.query.as_str() {
            "lists" => {
                for _ in 0..MANY {
                    let fields = Fields::new();
                    let _ = fields.append("x", &[b'x'; 60_000]);
                    std::mem::forget(fields);
                }
                return Ok(answer([("kept", "a thousand lists".to_owned())]));
            }
            "copies" => {
                let _ = fields.append("x", &[b'x'; 60_000]);
                (0..MANY).for_each(|_| std::mem::forget(fields.clone()));
                return Ok(answer([("kept", "a thousand copies".to_owned())]));
            }
            "methods" => {
                let method = Method::Other("A".repeat(1 << 20));
                for _ in 0..MANY {
                    let request = OutgoingRequest::new(Fields::new());
                    let _ = request.set_method(&method);
                    std::mem::forget(request);
                }
                return Ok(answer([("kept", "a thousand requests".to_owned())]));
            }
            _ => {}
        }
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
