//! Short facts about a user, who has them everywhere, and of a workspace, whose members share them: all of them are in
//! every preamble, within a budget of tokens. It is written with `memhost-sdk` only, like any other provider.

use memhost_sdk::types::{
    CaptureRequest, CaptureResponse, ContextBundle, Description, Error, ForgetEffect, ForgetResponse, GetResponse,
    ListPage, ListRequest, Permission, QueryRequest, RecordId, Scope, UpsertRequest, UpsertResponse,
};
use memhost_sdk::{NoConfig, Provider};

/// The provider.
#[derive(Debug)]
pub struct Facts;

impl Provider for Facts {
    type Config = NoConfig;

    fn describe() -> Description {
        Description::new("facts", env!("CARGO_PKG_VERSION"), "Short facts about a user and of a workspace")
            .require(Permission::Storage(64 << 20), "The facts are kept in it")
    }

    fn open(_: NoConfig) -> Result<Self, Error> {
        Ok(Self)
    }

    fn capture(&mut self, _: CaptureRequest) -> Result<CaptureResponse, Error> {
        Err(Error::unsupported("facts cannot be written yet"))
    }

    fn upsert_records(&mut self, _: UpsertRequest) -> Result<UpsertResponse, Error> {
        Err(Error::unsupported("facts cannot be written yet"))
    }

    fn query(&mut self, _: QueryRequest) -> Result<ContextBundle, Error> {
        Ok(Vec::new().into())
    }

    fn list_records(&mut self, _: ListRequest) -> Result<ListPage, Error> {
        Ok(ListPage::default())
    }

    fn get_record(&mut self, _: RecordId, _: Scope) -> Result<GetResponse, Error> {
        Ok(GetResponse::default())
    }

    fn forget(&mut self, ids: Vec<RecordId>, _: Scope) -> Result<ForgetResponse, Error> {
        Ok(ForgetResponse::all(ids, ForgetEffect::NotFound))
    }
}

memhost_sdk::export!(Facts);
