//! Work that the host does by itself: deliveries of hooks and extraction jobs.

pub(crate) mod background;
pub(crate) mod deliver;
pub(crate) mod delivery;
pub mod due_queue;
mod extract;
pub mod hooks;
mod hydrate;
mod job_control;
pub mod jobs;
pub mod retry;
