//! `needs-more` imports the interface `example:missing/thing`, which no host offers. It must be
//! refused at admission, with an error that names the interface.

use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference, answer};

#[allow(unsafe_code, unused_qualifications, missing_docs, clippy::all, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package example:missing;
            interface thing {
                ask: func(question: string) -> string;
            }
            world needing {
                import thing;
            }
        ",
        generate_all,
    });
}

struct NeedsMore;

impl Guest for NeedsMore {
    const KEY: &str = "needs-more";

    fn query(_: &mut Reference, request: QueryRequest) -> Result<ContextBundle, Error> {
        Ok(answer([("answer", bindings::example::missing::thing::ask(&request.query))]))
    }
}

well_behaved::export!(NeedsMore);
