//! The interface `explain`.

use crate::Provider;
use crate::exports::{Adapter, with_provider};
use crate::types::{Error, Explanation, QueryRequest};

/// Why a query answers what it answers. Exported by `export_explain!`.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/notes/provider.rs"));
/// impl memhost_sdk::Explain for Notes {
///     fn explain_query(&mut self, request: QueryRequest) -> Result<Explanation, Error> {
///         let query = serde_json::json!({
///             "words": request.query.to_lowercase().split_whitespace().collect::<Vec<_>>(),
///         });
///         let hits = self.query(request)?.snippets.into_iter().map(|hit| {
///             let value = match hit.score {
///                 Score::Rank(share) => share,
///                 _ => 0.0,
///             };
///             HitTrace {
///                 id: hit.id,
///                 contributions: vec![Contribution { name: "words.share".into(), value }],
///             }
///         });
///         Ok(Explanation { query: query.to_string(), hits: hits.collect() })
///     }
/// }
/// memhost_sdk::export_explain!(Notes);
///
/// # fn main() {
/// use memhost_sdk::{Explain, testing};
/// let mut notes = testing::open::<Notes>(serde_json::json!({})).unwrap();
/// notes.capture(testing::capture("op-1", "the gate is green")).unwrap();
/// let explanation = notes.explain_query(testing::query("green door")).unwrap();
/// assert_eq!(explanation.hits[0].contributions[0].value, 0.5);
/// # }
/// ```
pub trait Explain: Provider {
    /// Runs the query again and explains its result.
    ///
    /// # Errors
    /// As the contract says of `explain.explain-query`.
    fn explain_query(&mut self, request: QueryRequest) -> Result<Explanation, Error>;
}

interface! {
    ($) explain, Explain, { Contribution, Explanation, HitTrace },
    world "explain-provider", "export_explain_provider", export_explain_provider,
    export export_explain,
    about "how a query got its answer", host "shows it beside the answer"
}

impl<P: Explain> bindings::exports::paperclip::memory::explain::Guest for Adapter<P> {
    fn explain_query(request: QueryRequest) -> Result<Explanation, Error> {
        with_provider::<P, _>(|provider| provider.explain_query(request))
    }
}
