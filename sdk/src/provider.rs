//! The one trait that every provider implements.

use serde::de::DeserializeOwned;

use crate::types::{
    CaptureRequest, CaptureResponse, ConfigError, ContextBundle, Description, Error, ForgetRequest,
    ForgetResponse, GetResponse, ListPage, ListRequest, QueryRequest, RecordId, Scope,
    UpsertRequest, UpsertResponse,
};

/// A memory provider. What each call must do, its ordering, idempotency and limits, is stated in
/// `wit/provider.wit`; the comments here say only what the SDK adds.
///
/// A value of the implementing type serves one binding. The host drops it whenever it likes: what
/// it holds in memory is a cache.
pub trait Provider: Sized + 'static {
    /// The binding's configuration. Errors in it name the field, see [`crate::parse_config`]. Use
    /// `#[serde(deny_unknown_fields, default)]` so that a misspelt field is an error.
    /// [`crate::NoConfig`] for none.
    type Config: DeserializeOwned + 'static;

    /// The provider's description. Must not touch storage or files.
    fn describe() -> Description;

    /// Errors that the types cannot express, such as a value out of range. Must not touch storage
    /// or files.
    ///
    /// # Errors
    /// Every error, each with a JSON Pointer to the value.
    fn check_config(_config: &Self::Config) -> Result<(), Vec<ConfigError>> {
        Ok(())
    }

    /// Makes the provider ready, at the first call that an instance gets.
    ///
    /// # Errors
    /// The first call fails with the error, and the next call opens again.
    fn open(config: Self::Config) -> Result<Self, Error>;

    /// Captures something that happened.
    ///
    /// # Errors
    /// As the contract says of `capture`.
    fn capture(&mut self, request: CaptureRequest) -> Result<CaptureResponse, Error>;

    /// Writes records as they are.
    ///
    /// # Errors
    /// As the contract says of `upsert-records`.
    fn upsert_records(&mut self, request: UpsertRequest) -> Result<UpsertResponse, Error>;

    /// Finds the records that fit the query, best first.
    ///
    /// # Errors
    /// As the contract says of `query`.
    fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error>;

    /// All records of the scope, page by page.
    ///
    /// # Errors
    /// As the contract says of `list-records`.
    fn list_records(&mut self, request: ListRequest) -> Result<ListPage, Error>;

    /// One record.
    ///
    /// # Errors
    /// As the contract says of `get-record`.
    fn get_record(&mut self, id: RecordId, scope: Scope) -> Result<GetResponse, Error>;

    /// Makes records unreachable, with all that was derived from them.
    ///
    /// # Errors
    /// As the contract says of `forget`.
    fn forget(&mut self, request: ForgetRequest) -> Result<ForgetResponse, Error>;
}
