//! The provider from outside, natively.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod configuration;
mod limits;
mod preambles;
mod records;
mod scopes;

use memhost_facts::Facts;
use memhost_sdk::types::{
    Error, Intent, ListRequest, QueryRequest, RecordId, RecordWrite, Scope, Snippet, UpsertRequest,
};
use memhost_sdk::{Provider, testing};
use serde_json::{Value, json};

/// A scope of these names; an empty one is none.
fn scope(agent: &str, subject: &str, project: &str) -> Scope {
    let named = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
    Scope {
        agent_id: named(agent),
        subject_id: named(subject),
        project_id: named(project),
        ..Scope::company("company")
    }
}

/// The user `u` alone.
fn user() -> Scope {
    scope("", "u", "")
}

/// A provider and an operation id for each write.
struct Home {
    provider: Facts,
    operations: usize,
}

impl Home {
    fn new() -> Self {
        Self::with(json!({}))
    }

    fn with(config: Value) -> Self {
        Self { provider: testing::open(config).unwrap(), operations: 0 }
    }

    fn operation(&mut self) -> String {
        self.operations += 1;
        format!("operation-{}", self.operations)
    }

    /// Writes facts as an operation of their own.
    fn try_write(
        &mut self,
        scope: &Scope,
        records: Vec<RecordWrite>,
    ) -> Result<Vec<RecordId>, Error> {
        let request = UpsertRequest {
            operation_id: self.operation(),
            scope: scope.clone(),
            source: None,
            records,
        };
        Ok(self.provider.upsert_records(request)?.records)
    }

    fn write(&mut self, scope: &Scope, text: &str) -> RecordId {
        self.try_write(scope, vec![fact(text)]).unwrap().remove(0)
    }

    fn write_as(&mut self, scope: &Scope, text: &str, metadata: Value) -> RecordId {
        self.try_write(scope, vec![fact_with(text, metadata)]).unwrap().remove(0)
    }

    /// What a list shows, in its order.
    fn texts(&mut self, scope: &Scope) -> Vec<String> {
        let mut texts: Vec<String> = self.list(scope).into_iter().map(|item| item.text).collect();
        texts.sort();
        texts
    }

    fn list(&mut self, scope: &Scope) -> Vec<Snippet> {
        let request = ListRequest { scope: scope.clone(), ..testing::list(None, 1_000) };
        self.provider.list_records(request).unwrap().items
    }

    fn get(&mut self, scope: &Scope, id: &str) -> Option<Snippet> {
        self.provider.get_record(id.to_owned(), scope.clone()).unwrap().snippet
    }

    fn preamble(&mut self, scope: &Scope) -> (Option<String>, Vec<String>) {
        let request = QueryRequest {
            scope: scope.clone(),
            top_k: 1_000,
            intent: Intent::AgentPreamble,
            ..testing::query("whatever it is about")
        };
        let bundle = self.provider.query(request).unwrap();
        (bundle.profile_summary, bundle.snippets.into_iter().map(|snippet| snippet.text).collect())
    }

    fn ask(&mut self, scope: &Scope, question: &str) -> Vec<String> {
        let request = QueryRequest { scope: scope.clone(), ..testing::query(question) };
        self.provider
            .query(request)
            .unwrap()
            .snippets
            .into_iter()
            .map(|snippet| snippet.text)
            .collect()
    }
}

fn fact(text: &str) -> RecordWrite {
    RecordWrite { text: text.to_owned(), ..RecordWrite::default() }
}

#[allow(clippy::needless_pass_by_value, reason = "so that a test can write json!({}) in place")]
fn fact_with(text: &str, metadata: Value) -> RecordWrite {
    RecordWrite { metadata: Some(metadata.to_string()), ..fact(text) }
}

/// The field at fault, and what is said of it.
fn refused<T: std::fmt::Debug>(answer: Result<T, Error>) -> (String, String) {
    match answer.unwrap_err() {
        Error::InvalidRequest(wrong) => (wrong.field.unwrap_or_default(), wrong.message),
        other => panic!("{other:?}"),
    }
}
