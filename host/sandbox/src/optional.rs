//! The calls of the optional interfaces. Each file has one interface: its answers, its calls and their checks.

mod browse;
mod correction;
mod erasure;
mod explain;
mod extraction;
mod health;
mod migration;
mod profile;
mod review;
mod transfer;

pub use browse::BrowseAnswer;
pub use correction::Correction;
pub use erasure::ErasureAnswer;
pub use explain::ExplainAnswer;
pub use extraction::JobAnswer;
pub use profile::ProfileAnswer;
pub use transfer::{ChunkAnswer, ImportAnswer};
