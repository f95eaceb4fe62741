//! `echo` is stateless and fast: it answers every query with five snippets made of the query. The
//! time of a call is that of the host.

use memhost_sdk::{NoConfig, Provider, types::*};

struct Echo;

impl Provider for Echo {
    type Config = NoConfig;

    fn describe() -> Description {
        let description =
            Description::new("echo", env!("CARGO_PKG_VERSION"), "Repeats the question");
        Description { max_concurrency: 8, ..description }
    }
    fn open(_: NoConfig) -> Result<Self, Error> {
        Ok(Self)
    }
    fn capture(&mut self, request: CaptureRequest) -> Result<CaptureResponse, Error> {
        Ok(vec![request.operation_id].into())
    }
    fn upsert_records(&mut self, request: UpsertRequest) -> Result<UpsertResponse, Error> {
        let ids = request.records.into_iter().enumerate();
        Ok(ids
            .map(|(index, record)| record.id.unwrap_or_else(|| index.to_string()))
            .collect::<Vec<_>>()
            .into())
    }
    fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error> {
        let ranked = [("1", 1.0), ("2", 0.8), ("3", 0.6), ("4", 0.4), ("5", 0.2)].into_iter();
        let snippets = ranked.take(request.top_k as usize).map(|(id, rank)| Snippet {
            score: Score::Rank(rank),
            ..Snippet::new(id, request.query.as_str())
        });
        Ok(snippets.collect::<Vec<_>>().into())
    }
    fn list_records(&mut self, _: ListRequest) -> Result<ListPage, Error> {
        Ok(ListPage::default())
    }
    fn get_record(&mut self, _: RecordId, _: Scope) -> Result<GetResponse, Error> {
        Ok(GetResponse::default())
    }
    fn forget(&mut self, request: ForgetRequest) -> Result<ForgetResponse, Error> {
        Ok(ForgetResponse::all(request.ids, ForgetEffect::NotFound))
    }
}

memhost_sdk::export!(Echo);
