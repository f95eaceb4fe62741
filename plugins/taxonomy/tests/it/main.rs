//! The provider from outside, natively.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod capturing;
mod forms;
mod kinds;
mod labelled;
mod lives;
mod personal_data;
mod refused;
mod reviewing;
mod scopes;
mod searching;
mod transferring;
mod writing;

use memhost_sdk::types::*;
use memhost_sdk::{Extraction, Provider, Review, testing};
use memhost_taxonomy::Taxonomy;
use serde_json::{Value, json};

/// A provider on an empty host.
struct Home {
    provider: Taxonomy,
    operations: u32,
}

impl Home {
    fn new() -> Self {
        Self::with(json!({}))
    }

    fn with(config: Value) -> Self {
        memhost_taxonomy::fix(Some("2026-03-04T10:00:00Z".parse().unwrap()));
        Self { provider: testing::open(config).unwrap(), operations: 0 }
    }

    fn restart(&mut self) {
        self.provider = testing::reopen().unwrap();
    }

    fn operation(&mut self) -> String {
        self.operations += 1;
        format!("operation-{}", self.operations)
    }

    fn residue(&mut self, text: &str) -> CaptureRequest {
        let operation = self.operation();
        CaptureRequest { mode: CaptureMode::CaptureResidue, ..testing::capture(&operation, text) }
    }

    /// Captures a text as raw material and answers its job.
    fn queue(&mut self, text: &str) -> String {
        let request = self.residue(text);
        let mut answer = self.provider.capture(request).unwrap();
        assert!(answer.records.is_empty());
        answer.jobs.remove(0).provider_job_id
    }

    /// Runs a job to its end and answers its records.
    fn run(&mut self, job: &str) -> Vec<String> {
        loop {
            let result = self.provider.run_job(job.to_owned()).unwrap();
            match result.job.status {
                JobStatus::Queued => {}
                JobStatus::Succeeded => return result.records,
                other => panic!("{other:?}"),
            }
        }
    }

    /// Captures a text and lets its job run.
    fn learn(&mut self, text: &str) -> Vec<String> {
        let job = self.queue(text);
        self.run(&job)
    }

    /// Writes one record.
    fn put(&mut self, text: &str, metadata: Value) -> Result<String, Error> {
        let operation = self.operation();
        self.put_as(&operation, None, text, metadata)
    }

    #[allow(clippy::needless_pass_by_value, reason = "so that a test can write json!({}) in place")]
    fn put_as(
        &mut self,
        operation: &str,
        id: Option<&str>,
        text: &str,
        metadata: Value,
    ) -> Result<String, Error> {
        let record = RecordWrite {
            id: id.map(str::to_owned),
            text: text.to_owned(),
            metadata: Some(metadata.to_string()),
            ..RecordWrite::default()
        };
        let request = UpsertRequest { records: vec![record], ..testing::upsert(operation, &[]) };
        Ok(self.provider.upsert_records(request)?.records.remove(0))
    }

    fn get(&mut self, id: &str) -> Option<Snippet> {
        self.provider.get_record(id.to_owned(), testing::scope()).unwrap().snippet
    }

    fn list(&mut self) -> Vec<Snippet> {
        self.provider.list_records(testing::list(None, 1_000)).unwrap().items
    }

    fn pending(&mut self) -> Vec<Snippet> {
        self.provider.list_pending(testing::scope(), None, 1_000).unwrap().items
    }

    fn decide(&mut self, id: &str, decision: Decision) -> Result<Option<Snippet>, Error> {
        self.provider.decide(id.to_owned(), testing::scope(), decision)
    }

    fn ask(&mut self, question: &str) -> Vec<String> {
        texts(self.provider.query(testing::query(question)).unwrap().snippets)
    }
}

fn texts(snippets: Vec<Snippet>) -> Vec<String> {
    snippets.into_iter().map(|snippet| snippet.text).collect()
}

fn metadata(snippet: &Snippet) -> Value {
    serde_json::from_str(snippet.metadata.as_deref().unwrap()).unwrap()
}

/// The field and the message of a refusal.
fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> (String, String) {
    match result {
        Err(Error::InvalidRequest(refused)) => (refused.field.unwrap_or_default(), refused.message),
        other => panic!("{other:?}"),
    }
}
