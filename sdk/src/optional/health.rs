//! The interface `health`.

use crate::Provider;
use crate::exports::{Adapter, with_provider};
use crate::types::{Error, Report};

/// Whether the system behind the provider can be reached and lets it in. Exported by
/// `export_health!`.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/notes/provider.rs"));
/// impl memhost_sdk::Health for Notes {
///     fn check_health(&mut self) -> Result<Report, Error> {
///         let count = self.all(&Scope::company("any"))?.len();
///         Ok(Report { summary: format!("the storage answers, {count} notes") })
///     }
/// }
/// memhost_sdk::export_health!(Notes);
///
/// # fn main() {
/// use memhost_sdk::{Health, testing};
/// let mut notes = testing::open::<Notes>(serde_json::json!({})).unwrap();
/// assert_eq!(notes.check_health().unwrap().summary, "the storage answers, 0 notes");
/// # }
/// ```
pub trait Health: Provider {
    /// What is found, in one sentence.
    ///
    /// # Errors
    /// As the contract says of `health.check-health`: `unauthorized`, or `unavailable`.
    fn check_health(&mut self) -> Result<Report, Error>;
}

interface! {
    ($) health, Health, { Report },
    world "health-provider", "export_health_provider", export_health_provider,
    export export_health,
    about "whether the system behind it can be reached",
    host "asks when a binding is made, in `doctor`, and when calls fail"
}

impl<P: Health> bindings::exports::paperclip::memory::health::Guest for Adapter<P> {
    fn check_health() -> Result<Report, Error> {
        with_provider::<P, _>(Health::check_health)
    }
}
