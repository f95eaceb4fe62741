//! The host's imports: the real ones in the sandbox, an in-memory host in a native build.

#[cfg(target_family = "wasm")]
pub(crate) use crate::bindings::provider::paperclip::memory::{
    binding, call, embeddings, meter, storage,
};

#[cfg(not(target_family = "wasm"))]
pub(crate) use crate::testing::{binding, call, embeddings, meter, storage};
