//! The interface `profile`.

use crate::Provider;
use crate::exports::{Adapter, with_provider};
use crate::types::{Error, ProfileResponse, Scope};

/// A summary of what is known about a scope. Exported by `export_profile!`.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/notes/provider.rs"));
/// impl memhost_sdk::Profile for Notes {
///     fn get_profile(&mut self, scope: Scope) -> Result<ProfileResponse, Error> {
///         let likes: Vec<String> = self
///             .all(&scope)?
///             .into_iter()
///             .map(|(_, note)| note.text)
///             .filter(|text| text.contains("likes"))
///             .collect();
///         let summary = (!likes.is_empty()).then(|| likes.join("; "));
///         Ok(ProfileResponse { summary, usage: Vec::new() })
///     }
/// }
/// memhost_sdk::export_profile!(Notes);
///
/// # fn main() {
/// use memhost_sdk::{Profile, testing};
/// let mut notes = testing::open::<Notes>(serde_json::json!({})).unwrap();
/// assert_eq!(notes.get_profile(testing::scope()).unwrap().summary, None);
/// notes.capture(testing::capture("op-1", "she likes short answers")).unwrap();
/// assert_eq!(
///     notes.get_profile(testing::scope()).unwrap().summary.unwrap(),
///     "she likes short answers",
/// );
/// # }
/// ```
pub trait Profile: Provider {
    /// The summary, if anything is known.
    ///
    /// # Errors
    /// As the contract says of `profile.get-profile`.
    fn get_profile(&mut self, scope: Scope) -> Result<ProfileResponse, Error>;
}

interface! {
    ($) profile, Profile, { ProfileResponse },
    world "profile-provider", "export_profile_provider", export_profile_provider,
    export export_profile,
    about "a summary of what is known in a scope",
    host "asks for it at the start of a run, if the query brings none"
}

impl<P: Profile> bindings::exports::paperclip::memory::profile::Guest for Adapter<P> {
    fn get_profile(scope: Scope) -> Result<ProfileResponse, Error> {
        with_provider::<P, _>(|provider| provider.get_profile(scope))
    }
}
