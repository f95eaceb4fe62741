//! Text to vectors for providers that may ask for it: a model that the operator installed, computed
//! on this machine, or an endpoint that the operator named. Knows no binding but by its id, and no
//! provider.

mod attention;
mod curves;
mod dense;
mod encoder;
mod endpoint;
mod error;
mod installed;
mod model;
mod passes;
mod runtime;
mod shape;
mod weights;
mod wheel;
mod wordpiece;

#[cfg(test)]
#[path = "../benches/plain.rs"]
mod plain;
#[cfg(test)]
mod tests;

pub use endpoint::EndpointOptions;
pub use error::EmbeddingsError;
pub use installed::{InstalledModel, install, installed, remove};
pub use runtime::{Embeddings, EmbeddingsOptions};
