//! `bad-description` has an invalid provider key: with capitals, spaces and a slash, and too long.
//! It must be refused at admission, with an error that names the key.

use well_behaved::{Guest, sdk::types::Description};

struct BadDescription;

impl Guest for BadDescription {
    const KEY: &str = "bad-description";

    fn describe() -> Description {
        well_behaved::describe(&"Bad Description/../".repeat(5))
    }
}

well_behaved::export!(BadDescription);
