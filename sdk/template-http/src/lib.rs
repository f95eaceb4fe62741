//! A memory provider whose records are at a service, over HTTP.
//!
//! Start with `service.rs`: put your service's routes in the place of those of the invented one,
//! which keeps notes. What the SDK makes of them keeps the contract: partitions, filters, cursors,
//! and writes that happen once although the service does not know idempotency. What each call must
//! do is stated in `provider.wit`, in the folder `wit` beside the SDK.

mod service;

use memhost_sdk::schemars::{self, JsonSchema};
use serde::Deserialize;

pub use crate::service::Memory;

/// The binding's configuration: what an operator may set. A field with a wrong name or type is
/// refused, and the error names it. The schema that operators see is made of this type and its
/// comments.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// Where the service is, such as `https://notes.example.com`.
    pub url: String,
    /// The notebook of the records; without it `memhost-` and the company.
    pub book: Option<String>,
    /// The price of a search, in millionths of a cent, if the service reports no costs.
    pub search_microcents: Option<u64>,
}

// Each interface beside that of providers is a trait and a line: see the guide.
memhost_sdk::export!(Memory);
memhost_sdk::export_correction!(Memory);
memhost_sdk::export_health!(Memory);
