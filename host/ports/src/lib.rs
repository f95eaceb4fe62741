//! Traits that join crates which do not know each other: time and randomness, a provider's storage,
//! embeddings.

mod clock;
mod embedder;
mod storage;

pub use clock::{Clock, SystemClock, new_id};
pub use embedder::{
    EmbeddedTexts, Embedder, EmbeddingError, EmbeddingModel, MAX_EMBEDDING_TEXT_BYTES,
    MAX_EMBEDDING_TEXTS, OutgoingCounter,
};
pub use storage::{
    BindingStorage, StorageEntry, StorageError, StoragePage, StorageSize, StorageWrite,
};
