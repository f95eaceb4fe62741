//! `memhost` as a library. The rooms in the order in which a request travels.

pub mod contract;
pub mod store;
