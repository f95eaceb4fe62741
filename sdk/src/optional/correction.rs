//! The interface `correction`.

use crate::Provider;
use crate::exports::{Adapter, with_provider};
use crate::types::{CorrectRequest, CorrectResponse, Error};

/// Correcting a record. Exported by `export_correction!`.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/notes/provider.rs"));
/// impl memhost_sdk::Correction for Notes {
///     fn correct(&mut self, request: CorrectRequest) -> Result<CorrectResponse, Error> {
///         let Patch::Replacement(record) = request.patch else {
///             return Err(Error::unsupported(
///                 "notes cannot read instructions; send the record as it should be",
///             ));
///         };
///         let Some(note) = self.find(&request.id, &request.scope)? else {
///             return Err(Error::NotFound(format!("there is no note {}", request.id)));
///         };
///         self.notes.put(&request.id, &Note { text: record.text, ..note })?;
///         Ok(CorrectResponse { record_id: request.id, superseded: None, usage: Vec::new() })
///     }
/// }
/// memhost_sdk::export_correction!(Notes);
///
/// # fn main() {
/// use memhost_sdk::{Correction, testing};
/// let mut notes = testing::open::<Notes>(serde_json::json!({})).unwrap();
/// let id =
///     notes.capture(testing::capture("op-1", "the gate code is 17")).unwrap().records.remove(0);
/// let right = RecordWrite { text: "the gate code is 18".into(), ..RecordWrite::default() };
/// let patch = Patch::Replacement(right);
/// let request =
///     CorrectRequest { operation_id: "op-2".into(), id, scope: testing::scope(), patch };
/// notes.correct(request).unwrap();
/// assert_eq!(
///     notes.query(testing::query("gate")).unwrap().snippets[0].text,
///     "the gate code is 18",
/// );
/// # }
/// ```
pub trait Correction: Provider {
    /// Applies a correction, in place or by a superseding record.
    ///
    /// # Errors
    /// As the contract says of `correction.correct`.
    fn correct(&mut self, request: CorrectRequest) -> Result<CorrectResponse, Error>;
}

interface! {
    ($) correction, Correction, { CorrectRequest, CorrectResponse, Patch },
    world "correction-provider", "export_correction_provider", export_correction_provider,
    export export_correction,
    about "correct a record", host "calls it for `memhost correct`"
}

impl<P: Correction> bindings::exports::paperclip::memory::correction::Guest for Adapter<P> {
    fn correct(request: CorrectRequest) -> Result<CorrectResponse, Error> {
        with_provider::<P, _>(|provider| provider.correct(request))
    }
}
