//! A whole provider: notes in the binding's storage, found by the words that they share with the
//! question. The examples of the optional interfaces in the crate's documentation build on it. As a
//! component: `cargo build -p memhost-sdk --example notes --target wasm32-wasip2`.

/// The provider and its one line.
pub mod provider;
