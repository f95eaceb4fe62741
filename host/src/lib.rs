//! `memhost` as a library: open a [`service::Service`] on a data directory and call its operations.
//!
//! The rooms, in the order in which a request travels. Calls go down this list, never up.

pub mod cli;

pub mod server;

pub mod api;
pub mod check;
pub mod compat;
pub mod eval;
pub mod mcp;
pub mod ui;

pub mod edge;

pub mod service;

pub mod accounting;
pub mod hooks;
pub mod jobs;
pub mod review;

pub mod access;
pub mod bindings;
pub mod embeddings;
pub mod plugins;
pub mod sandbox;
pub mod store;

pub mod contract;
