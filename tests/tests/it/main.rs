//! What crosses crates, in one binary: guests and wasmtime are linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod access;
mod bad_input;
mod company;
mod conformance;
mod crash;
mod egress;
mod hooks;
mod hostile;
mod http;
mod jobs;
mod layers;
mod money;
mod observability;
mod operations;
mod plugins;
mod review;
mod support;
mod transfer;
mod ui_pages;
