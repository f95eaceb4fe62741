//! A well-behaved provider with one call replaced.

use std::marker::PhantomData;

use memhost_sdk::types::*;
use memhost_sdk::{NoConfig, Provider};

use crate::Reference;

/// A guest that does what [`Reference`] does, except for what it overrides.
pub trait Guest: 'static {
    /// The provider key: the name of the guest's folder.
    const KEY: &'static str;

    /// Storage is optional, so that a test can bind the guest without a grant if it does not need
    /// records.
    fn describe() -> Description {
        describe(Self::KEY)
    }
    /// As [`Reference`], but in every mode the payload becomes a record at once.
    fn capture(
        reference: &mut Reference,
        request: CaptureRequest,
    ) -> Result<CaptureResponse, Error> {
        reference.capture(CaptureRequest { mode: CaptureMode::CaptureRecord, ..request })
    }
    /// As [`Reference`].
    fn upsert_records(
        reference: &mut Reference,
        request: UpsertRequest,
    ) -> Result<UpsertResponse, Error> {
        reference.upsert_records(request)
    }
    /// As [`Reference`].
    fn query(reference: &mut Reference, request: QueryRequest) -> Result<ContextBundle, Error> {
        reference.query(request)
    }
    /// As [`Reference`].
    fn list_records(reference: &mut Reference, request: ListRequest) -> Result<ListPage, Error> {
        reference.list_records(request)
    }
    /// As [`Reference`].
    fn get_record(
        reference: &mut Reference,
        id: RecordId,
        scope: Scope,
    ) -> Result<GetResponse, Error> {
        reference.get_record(id, scope)
    }
    /// As [`Reference`].
    fn forget(reference: &mut Reference, request: ForgetRequest) -> Result<ForgetResponse, Error> {
        reference.forget(request)
    }
}

/// The default description of a guest: four instances at once, and optional storage.
pub fn describe(key: &str) -> Description {
    let description =
        Description::new(key, env!("CARGO_PKG_VERSION"), "A guest of memhost's test suite");
    Description { max_concurrency: 4, ..description }
        .prefer(Permission::Storage(64 << 20), "Records are stored in it")
}

/// An answer of records that do not exist, as pairs of id and text: how a guest reports what
/// happened.
pub fn answer<I: Into<String>, T: Into<String>>(
    records: impl IntoIterator<Item = (I, T)>,
) -> ContextBundle {
    let snippets: Vec<Snippet> =
        records.into_iter().map(|(id, text)| Snippet::new(id, text)).collect();
    snippets.into()
}

/// The provider of a guest: [`Reference`] with the guest's calls.
#[derive(Debug)]
pub struct Wrapped<G>(Reference, PhantomData<G>);

impl<G: Guest> Provider for Wrapped<G> {
    type Config = NoConfig;

    fn describe() -> Description {
        G::describe()
    }
    fn open(config: NoConfig) -> Result<Self, Error> {
        Ok(Self(Reference::open(config)?, PhantomData))
    }
    fn capture(&mut self, request: CaptureRequest) -> Result<CaptureResponse, Error> {
        G::capture(&mut self.0, request)
    }
    fn upsert_records(&mut self, request: UpsertRequest) -> Result<UpsertResponse, Error> {
        G::upsert_records(&mut self.0, request)
    }
    fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error> {
        G::query(&mut self.0, request)
    }
    fn list_records(&mut self, request: ListRequest) -> Result<ListPage, Error> {
        G::list_records(&mut self.0, request)
    }
    fn get_record(&mut self, id: RecordId, scope: Scope) -> Result<GetResponse, Error> {
        G::get_record(&mut self.0, id, scope)
    }
    fn forget(&mut self, request: ForgetRequest) -> Result<ForgetResponse, Error> {
        G::forget(&mut self.0, request)
    }
}
