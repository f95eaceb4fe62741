//! Traits that join crates which do not know each other: time and randomness, a provider's storage,
//! embeddings. And where all of them compute.

mod clock;
mod embedder;
mod executor;
mod long;
mod storage;
mod turns;

pub use clock::{Clock, SystemClock, new_id};
pub use embedder::{
    EmbeddedTexts, Embedder, EmbeddingError, EmbeddingModel, MAX_EMBEDDING_TEXT_BYTES,
    MAX_EMBEDDING_TEXTS,
};
pub use executor::{
    MAX_INLINE_BYTES, expect_off_executor, in_turn, off_executor, spawn, spawn_blocking,
    spawn_blocking_usual, to_json,
};
pub use long::{go_long, is_long, spawn_long, spawn_short};
pub use storage::{
    BindingStorage, StorageEntry, StorageError, StoragePage, StorageSize, StorageWrite,
};
pub use turns::{Turn, Turns};
