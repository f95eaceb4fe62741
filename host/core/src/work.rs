//! Work that the host does by itself: deliveries of hooks and extraction jobs.

pub(crate) mod background;
pub(crate) mod control;
pub(crate) mod deliver;
pub(crate) mod deliver_batch;
pub(crate) mod deliveries;
pub(crate) mod due_queue;
mod error;
mod extract;
mod hydrate;
pub(crate) mod jobs;
mod not_taken;
mod of_sources;
mod outdated;
mod recall_text;
mod retry;
mod subscribers;
mod waits;

pub use control::{ChangedCount, DeliveryAction};
pub use deliver_batch::BatchReceipt;
pub use error::WorkError;
pub use recall_text::render as render_recall;
pub use retry::RetryPolicy;
