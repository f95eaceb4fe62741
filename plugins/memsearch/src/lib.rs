//! Records in Markdown journals that memsearch indexes. It is written with `memhost-sdk` only, like
//! any other provider; the form of a journal is in `memhost-journal`, which `memhost bridge
//! memsearch` uses, too.

mod days;
mod provider;

pub use provider::Memsearch;

memhost_sdk::export!(Memsearch);
memhost_sdk::export_correction!(Memsearch);
