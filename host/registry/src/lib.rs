//! What serves a call: the providers that the host has, in all their versions.

pub mod plugins;
pub mod secrets;
