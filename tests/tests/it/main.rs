//! What crosses crates, in one binary: guests and wasmtime are linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod access;
mod adapter;
mod adapter_install;
mod adapter_trouble;
mod bad_input;
mod browser;
mod cli;
mod company;
mod compat;
mod conformance;
mod crash;
mod egress;
mod hooks;
mod hostile;
mod http;
mod jobs;
mod layers;
mod look;
mod mcp;
mod mcp_clients;
mod mcp_http;
mod money;
mod observability;
mod openapi;
mod operations;
mod plugins;
mod review;
mod schemathesis;
mod stream;
mod support;
mod surfaces;
mod taxonomy;
mod transfer;
mod ui;
mod ui_pages;
mod ui_records;
