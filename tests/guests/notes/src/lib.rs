//! `notes` is the example of the SDK, unchanged: it must follow the rules, because authors begin
//! with it.

include!("../../../../sdk/examples/notes/provider.rs");
