//! temp
use memhost_sdk::{Provider, types::*};
struct Echo;
impl Provider for Echo {
    type Config = memhost_sdk::NoConfig;
    fn describe() -> Description {
        Description::new("echo", "0.1.0", "x")
    }
    fn open(_: Self::Config) -> Result<Self, Error> {
        Ok(Echo)
    }
    fn capture(&mut self, _: CaptureRequest) -> Result<CaptureResponse, Error> {
        Ok(CaptureResponse::default())
    }
    fn upsert_records(&mut self, _: UpsertRequest) -> Result<UpsertResponse, Error> {
        Err(Error::unsupported("echo keeps no records"))
    }
    fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error> {
        Ok(ContextBundle::from(vec![Snippet::new("echo", request.query)]))
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
impl memhost_sdk::Explain for Echo {
    fn explain_query(&mut self, _: QueryRequest) -> Result<Explanation, Error> {
        Err(Error::unsupported("x"))
    }
}
memhost_sdk::export!(Echo);
memhost_sdk::export_explain!(Echo);
