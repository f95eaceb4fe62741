//! Work that the host does by itself: deliveries of hooks and extraction jobs.

pub(crate) mod control;
mod deferral;
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
pub(crate) mod worker;

pub use control::{ChangedCount, DeliveryAction};
pub use deliver_batch::BatchReceipt;
pub use error::BackgroundError;
pub use recall_text::render as render_recall;
pub use retry::RetryPolicy;
