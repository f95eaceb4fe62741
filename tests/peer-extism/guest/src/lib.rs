//! What the guest `echo` does, as an Extism plug-in: a query is answered with five snippets of
//! itself.

use extism_pdk::{FnResult, Json, plugin_fn};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueryRequest {
    #[allow(dead_code, reason = "read as the real one would be")]
    scope: Scope,
    query: String,
    top_k: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "read as the real one would be")]
pub struct Scope {
    company_id: String,
}

#[derive(Serialize)]
pub struct Bundle {
    snippets: Vec<Snippet>,
}

#[derive(Serialize)]
pub struct Snippet {
    id: &'static str,
    text: String,
    rank: f64,
}

#[plugin_fn]
pub fn query(Json(request): Json<QueryRequest>) -> FnResult<Json<Bundle>> {
    let ranked = [("1", 1.0), ("2", 0.8), ("3", 0.6), ("4", 0.4), ("5", 0.2)].into_iter();
    let snippets = ranked.take(request.top_k as usize).map(|(id, rank)| Snippet {
        id,
        text: request.query.clone(),
        rank,
    });
    Ok(Json(Bundle { snippets: snippets.collect() }))
}
