//! `notes` is the example of the SDK, word for word: what authors begin with keeps the rules.

include!("../../../../sdk/examples/notes/provider.rs");
