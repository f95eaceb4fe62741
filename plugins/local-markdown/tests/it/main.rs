//! The provider from outside, natively.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod changes_by_hand;
mod configuration;
mod lists;
mod meaning;
mod odd_files;
mod quality;
mod records;
mod restarts;
mod scopes;
mod search;
mod stored;
mod tree;
mod words;

use std::path::{Path, PathBuf};

use memhost_local_markdown::LocalMarkdown;
use memhost_sdk::types::{GetResponse, RecordWrite, Scope, Snippet};
use memhost_sdk::{Provider, testing};
use serde_json::{Value, json};

/// A provider on a directory that goes with it.
struct Home {
    directory: tempfile::TempDir,
    provider: LocalMarkdown,
}

impl Home {
    fn new() -> Self {
        Self::with(&json!({}))
    }

    fn with(config: &Value) -> Self {
        let directory = tempfile::tempdir().unwrap();
        // Every call looks for changes by hand, so that no test waits for them.
        let mut all = json!({"durable": false, "checkMs": 0});
        all.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
        let provider = testing::open_in(directory.path(), all).unwrap();
        Self { directory, provider }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn restart(&mut self) {
        self.provider = testing::reopen().unwrap();
    }

    /// Captures texts and answers their ids.
    fn keep(&mut self, texts: &[&str]) -> Vec<String> {
        let mut capture = |text: &&str| {
            self.provider.capture(testing::capture(&format!("keep {text}"), text)).unwrap()
        };
        texts.iter().map(&mut capture).map(|response| response.records[0].clone()).collect()
    }

    fn put(&mut self, id: &str, text: &str) {
        let write = RecordWrite {
            id: Some(id.to_owned()),
            text: text.to_owned(),
            ..RecordWrite::default()
        };
        let ids = self.write("put", vec![write], testing::scope());
        assert_eq!(ids, [id]);
    }

    fn write(&mut self, operation: &str, records: Vec<RecordWrite>, scope: Scope) -> Vec<String> {
        let request =
            memhost_sdk::types::UpsertRequest { scope, records, ..testing::upsert(operation, &[]) };
        self.provider.upsert_records(request).unwrap().records
    }

    fn get(&mut self, id: &str) -> Option<Snippet> {
        let GetResponse { snippet, .. } =
            self.provider.get_record(id.to_owned(), testing::scope()).unwrap();
        snippet
    }

    /// The texts that answer, best first.
    fn ask(&mut self, question: &str) -> Vec<String> {
        let found = self.provider.query(testing::query(question)).unwrap().snippets;
        found.into_iter().map(|snippet| snippet.text).collect()
    }

    /// The Markdown files there are.
    fn files(&self) -> Vec<PathBuf> {
        let all = everything(self.path());
        all.into_iter()
            .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
            .collect()
    }

    fn file_with(&self, text: &str) -> PathBuf {
        let holds = |path: &PathBuf| std::fs::read_to_string(path).unwrap().contains(text);
        self.files().into_iter().find(holds).unwrap()
    }
}

/// Every file below a directory.
fn everything(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => files.extend(everything(&entry.path())),
            false => files.push(entry.path()),
        }
    }
    files
}
