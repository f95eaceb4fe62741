//! The provider, natively.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod meaning;
mod projects;
mod ranking;
mod records;
mod transfer;

use memhost_cross_agent::CrossAgent;
use memhost_sdk::types::*;
use memhost_sdk::{Provider, testing};
use serde_json::{Value, json};

/// A provider on an empty host.
pub(crate) fn open() -> CrossAgent {
    with(&json!({}))
}

/// The same with a configuration.
pub(crate) fn with(config: &Value) -> CrossAgent {
    testing::open(config.clone()).unwrap()
}

/// A scope of a project, with no agent.
pub(crate) fn project(id: &str) -> Scope {
    Scope { project_id: Some(id.to_owned()), ..Scope::company("company") }
}

/// Writes one item under an id.
pub(crate) fn put(
    provider: &mut CrossAgent,
    scope: &Scope,
    id: &str,
    text: &str,
    metadata: &Value,
) {
    let record = RecordWrite {
        id: Some(id.to_owned()),
        text: text.to_owned(),
        metadata: Some(metadata.to_string()),
        ..RecordWrite::default()
    };
    let request = UpsertRequest {
        operation_id: format!("op-{id}"),
        scope: scope.clone(),
        source: None,
        records: vec![record],
    };
    provider.upsert_records(request).unwrap();
}

/// A query in a scope.
pub(crate) fn ask(
    provider: &mut CrossAgent,
    scope: &Scope,
    query: &str,
    filter: Option<&Value>,
) -> Vec<Snippet> {
    let request = QueryRequest {
        scope: scope.clone(),
        metadata_filter: filter.map(Value::to_string),
        ..testing::query(query)
    };
    provider.query(request).unwrap().snippets
}

/// The ids of what a query finds.
pub(crate) fn ids(provider: &mut CrossAgent, scope: &Scope, query: &str) -> Vec<String> {
    ask(provider, scope, query, None).into_iter().map(|hit| hit.id).collect()
}

/// A score as a number.
pub(crate) fn score(hit: &Snippet) -> f64 {
    match hit.score {
        Score::Rank(score) => score,
        _ => panic!("{hit:?}"),
    }
}
