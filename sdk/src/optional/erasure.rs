//! The interface `erasure`.

use crate::Provider;
use crate::exports::{Adapter, with_provider};
use crate::types::{Error, ForgetScopeRequest, ForgetScopeResponse};

/// Forgetting everything in a scope at once. Exported by `export_erasure!`.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/notes/provider.rs"));
/// impl memhost_sdk::Erasure for Notes {
///     fn forget_scope(
///         &mut self,
///         request: ForgetScopeRequest,
///     ) -> Result<ForgetScopeResponse, Error> {
///         let ids: Vec<String> =
///             self.all(&request.scope)?.into_iter().map(|(id, _)| id).collect();
///         let count = ids.len() as u64;
///         self.forget(ForgetRequest {
///             operation_id: request.operation_id,
///             scope: request.scope,
///             ids,
///         })?;
///         Ok(ForgetScopeResponse { extent: Extent::Hard, count: Some(count), usage: Vec::new() })
///     }
/// }
/// memhost_sdk::export_erasure!(Notes);
///
/// # fn main() {
/// use memhost_sdk::{Erasure, testing};
/// let mut notes = testing::open::<Notes>(serde_json::json!({})).unwrap();
/// notes.capture(testing::capture("op-1", "one")).unwrap();
/// let request = ForgetScopeRequest { operation_id: "op-2".into(), scope: testing::scope() };
/// assert_eq!(notes.forget_scope(request.clone()).unwrap().count, Some(1));
/// assert_eq!(notes.forget_scope(request).unwrap().count, Some(0));
/// # }
/// ```
pub trait Erasure: Provider {
    /// Forgets every record of the scope.
    ///
    /// # Errors
    /// As the contract says of `erasure.forget-scope`.
    fn forget_scope(&mut self, request: ForgetScopeRequest) -> Result<ForgetScopeResponse, Error>;
}

interface! {
    ($) erasure, Erasure, { Extent, ForgetScopeRequest, ForgetScopeResponse },
    world "erasure-provider", "export_erasure_provider", export_erasure_provider,
    export export_erasure,
    about "forgetting everything in a scope at once", host "asks when a company is erased or a \
        scope is forgotten, and looks whether anything is left"
}

impl<P: Erasure> bindings::exports::paperclip::memory::erasure::Guest for Adapter<P> {
    fn forget_scope(request: ForgetScopeRequest) -> Result<ForgetScopeResponse, Error> {
        with_provider::<P, _>(|provider| provider.forget_scope(request))
    }
}
