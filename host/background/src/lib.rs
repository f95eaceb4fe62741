//! Work that a host does by itself: deliveries of hooks, extraction jobs, and the compaction of the
//! store. It calls operations as every caller does.

mod background;
mod batch_order;
mod cancel;
mod compaction;
mod deferral;
mod deliver;
mod deliver_batch;
mod extract;
mod fit;
mod hydrate;
mod not_taken;
mod outdated;
mod recall_text;
mod subscribers;
mod worker;

pub use background::Background;
pub use deliver_batch::BatchReceipt;
pub use recall_text::render as render_recall;
