//! The operations of a host, and all that they need: bindings, access, plugins, hooks, jobs, review, accounting.

pub mod access;
pub mod accounting;
pub mod bindings;
pub mod hooks;
pub mod jobs;
pub mod plugins;
pub mod retry;
pub mod review;
pub mod service;
