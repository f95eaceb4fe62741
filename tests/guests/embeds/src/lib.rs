//! `embeds` asks the host for vectors and stores nothing. A query `N TEXT` embeds the text N times
//! in one call and answers which model there is, how many vectors came and the first of them; if it
//! gets none, `refused: ` and the reason.

use memhost_sdk::{NoConfig, Profile, Provider, embeddings, types::*};

struct Embeds;

fn answer(question: &str) -> Result<String, embeddings::Error> {
    let (count, text) = question.split_once(' ').unwrap_or(("1", question));
    let texts = vec![text.to_owned(); count.parse().unwrap_or(1)];
    let embedded = embeddings::embed(&texts)?;
    let model = embeddings::model()?.map(|model| format!("{} {}", model.name, model.dimensions));
    let reported = embedded.usage.is_some();
    Ok(format!("{model:?} {} {:?} {reported}", embedded.vectors.len(), embedded.vectors.first()))
}

impl Provider for Embeds {
    type Config = NoConfig;

    fn describe() -> Description {
        Description::new("embeds", "1.0.0", "Asks for vectors")
            .prefer(Permission::Embeddings, "It has nothing else to do")
    }
    fn open(_: NoConfig) -> Result<Self, Error> {
        Ok(Self)
    }
    fn capture(&mut self, request: CaptureRequest) -> Result<CaptureResponse, Error> {
        Ok(vec![request.operation_id].into())
    }
    fn upsert_records(&mut self, request: UpsertRequest) -> Result<UpsertResponse, Error> {
        Ok((0..request.records.len()).map(|index| index.to_string()).collect::<Vec<_>>().into())
    }
    fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error> {
        let text = answer(&request.query).unwrap_or_else(|error| format!("refused: {error}"));
        // Two calls of the import. The operation's record has their sum.
        if request.query.starts_with("1 ") {
            embeddings::embed(&["something else".to_owned()]).ok();
        }
        Ok(vec![Snippet::new("1", text)].into())
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

impl Profile for Embeds {
    fn get_profile(&mut self, _: Scope) -> Result<ProfileResponse, Error> {
        embeddings::embed(&["who somebody is".to_owned()]).ok();
        Ok(ProfileResponse { summary: Some("somebody".to_owned()), usage: Vec::new() })
    }
}

memhost_sdk::export!(Embeds);
memhost_sdk::export_profile!(Embeds);
