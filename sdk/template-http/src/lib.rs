//! A memory provider whose records are at a service, over HTTP.
//!
//! Start with `service.rs`: put your service's routes in the place of those of the invented one, which keeps notes. What
//! the SDK makes of them keeps the contract: partitions, filters, cursors, and writes that happen once although the service
//! does not know idempotency. What each call must do is stated in `provider.wit`, in the folder `wit` beside the SDK.

mod service;

use memhost_sdk::remote::{Adapter, Records, Tag};
use memhost_sdk::schemars::{self, JsonSchema};
use memhost_sdk::{Health, types::*};
use serde::Deserialize;

use crate::service::Notes;

/// The binding's configuration: what an operator may set. A field with a wrong name or type is refused, and the error
/// names it. The schema that operators see is made of this type and its comments.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// Where the service is, such as `https://notes.example.com`.
    pub url: String,
    /// What a search costs, in millionths of a cent, if the service tells no costs.
    pub search_microcents: Option<u64>,
}

/// The provider of a binding.
#[derive(Debug)]
pub struct Memory {
    records: Records<Notes>,
}

impl Adapter for Memory {
    type Config = Config;
    type Service = Notes;

    fn describe() -> Description {
        let base = Description::new("memory-template-http", env!("CARGO_PKG_VERSION"), "Keeps records at a service");
        Description {
            config_schema: Some(memhost_sdk::schema::of::<Config>()),
            declarations: Declarations {
                // A record takes up to four requests, and a call has 64. The host splits larger requests.
                max_upsert: Some(15),
                max_forget: Some(15),
                // What the service cannot keep, so that nobody relies on it.
                exceptions: vec![Exception::AllOrNoneUpserts, Exception::ExactlyOnceLists],
                ..Declarations::default()
            },
            ..base
        }
        .require(Permission::Http(HttpPermission::to("{{config:/url}}")), "The records are there")
        .require(Permission::Storage(64 << 20), "Notes what was written, so that nothing is written twice")
        .require(Permission::Secret("NOTES_API_KEY".to_owned()), "The key of the service")
    }

    fn open(config: Config) -> Result<Self, Error> {
        Ok(Self { records: Records::new(Notes::new(config)?) })
    }

    fn records(&self, scope: &Scope) -> &Records<Notes> {
        self.records.service.belong_to(&scope.company_id);
        &self.records
    }

    /// This service has no model, so that every capture is a record.
    fn learns(&self, _: CaptureMode) -> bool {
        false
    }

    fn learn(&self, _: &CaptureRequest, _: &str, _: &Tag) -> Result<CaptureResponse, Error> {
        Err(Error::unsupported("the service extracts nothing"))
    }
}

impl Health for Memory {
    /// The host asks when a binding is made, in `memhost doctor`, and when calls have failed.
    fn check_health(&mut self) -> Result<Report, Error> {
        self.records.service.ping()?;
        Ok(Report { summary: format!("the service answers at {}", self.records.service.config.url) })
    }
}

memhost_sdk::export!(Memory);
memhost_sdk::export_correction!(Memory);
memhost_sdk::export_health!(Memory);
