//! The store on a real PostgreSQL, which each run of these tests starts for itself.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

mod attacks;
mod filters;
mod homes;
mod hosts;
mod lanes;
mod model;
mod pooler;
mod promotion;
mod proxy;
mod server;
mod steps;
mod suite;
