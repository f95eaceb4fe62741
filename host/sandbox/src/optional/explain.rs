//! The interface `explain`: how a query came to its answer.

use crate::answer::Answer;
use crate::contract::explain as wire;
use crate::convert;
use crate::error::Failure;
use crate::instances::{Instances, call};
use crate::normalize::{Checked, Normalize, bad, count, name, text_size};
use memhost_types::{Contribution, HitTrace, QueryRequest, limits};

/// The answer of `explain-query`.
#[derive(Debug)]
pub struct ExplainAnswer {
    /// How the query was read.
    pub query: serde_json::Value,
    /// In the order of the query's result.
    pub hits: Vec<HitTrace>,
}

impl Instances {
    /// Runs a query again and asks how it came to its answer.
    ///
    /// # Errors
    /// As [`CallError`](crate::CallError) says.
    pub async fn explain(&self, request: &QueryRequest) -> Result<Answer<ExplainAnswer>, Failure> {
        if self.own_filter(request.metadata_filter.as_ref()).is_none() {
            return self.explain_as_it_is(request).await;
        }
        // The hits of an explanation have no metadata: the query says which are wanted.
        let mut found = self.query(request).await?;
        let asked = QueryRequest {
            metadata_filter: None,
            token_budget: None,
            top_k: Some(limits::MAX_PAGE),
            ..request.clone()
        };
        let explained = match self.explain_as_it_is(&asked).await {
            Ok(explained) => found.add(explained),
            Err(failure) => return Err(found.into_failure(failure)),
        };
        let is_wanted = |hit: &HitTrace| found.value.snippets.iter().any(
            |snippet| snippet.handle == hit.handle
        );
        let hits = explained.hits.into_iter().filter(is_wanted).collect();
        Ok(Answer {
            value: ExplainAnswer { hits, ..explained },
            metered: found.metered.and(found.value.usage.into()),
            log: found.log,
            left_out: found.left_out,
            provider_us: found.provider_us,
        })
    }

    async fn explain_as_it_is(
        &self, request: &QueryRequest,
    ) -> Result<Answer<ExplainAnswer>, Failure> {
        let request = convert::query(request);
        call!(
            self, wire.call_explain_query(&request), |checks, answer| explained(
                checks, answer, request.top_k,
            ),
        ).await
    }
}

fn explained(
    normalize: &Normalize, answer: wire::Explanation, top_k: u32,
) -> Checked<ExplainAnswer> {
    count("hits", answer.hits.len(), top_k as usize)?;
    text_size("query", &answer.query, limits::MAX_JSON_BYTES)?;
    let query = match serde_json::from_str(&answer.query) {
        Ok(query) => query,
        Err(error) => return bad(format!("`query` is not JSON: {error}")),
    };
    let contribution = |part: wire::Contribution| {
        if !part.value.is_finite() {
            return bad(
                format!("the contribution `{}` is {}; numbers are finite", part.name, part.value)
            );
        }
        Ok(Contribution { name: name("contribution.name", part.name)?, value: part.value })
    };
    let hit = |hit: wire::HitTrace| {
        count("contributions", hit.contributions.len(), limits::MAX_CONTRIBUTIONS)?;
        let contributions =
            hit.contributions.into_iter().map(contribution).collect::<Checked<_>>()?;
        Ok(HitTrace { handle: normalize.handle(hit.id)?, contributions })
    };
    let hits = normalize.sound(|hit| format!("the hit {:?}", hit.id), answer.hits, hit);
    Ok(ExplainAnswer { query, hits })
}
