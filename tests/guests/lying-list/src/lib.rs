//! `lying-list` lists seven records more than the limit, and answers an upsert with one id fewer
//! than records. Both calls must fail with an error that says what was wrong.

use well_behaved::sdk::{Provider, types::*};
use well_behaved::{Guest, Reference, answer};

struct LyingList;

impl Guest for LyingList {
    const KEY: &str = "lying-list";

    fn upsert_records(
        reference: &mut Reference,
        request: UpsertRequest,
    ) -> Result<UpsertResponse, Error> {
        let mut response = reference.upsert_records(request)?;
        response.records.pop();
        Ok(response)
    }

    fn list_records(_: &mut Reference, request: ListRequest) -> Result<ListPage, Error> {
        let items = answer((0..request.limit + 7).map(|n| (n.to_string(), "listed"))).snippets;
        Ok(ListPage { items, ..ListPage::default() })
    }
}

well_behaved::export!(LyingList);
