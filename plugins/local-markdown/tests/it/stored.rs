//! Without a directory the files are in storage.

use memhost_local_markdown::LocalMarkdown;
use memhost_sdk::call::Grant;
use memhost_sdk::storage::{self, Batch};
use memhost_sdk::types::*;
use memhost_sdk::{Provider, testing};
use serde_json::json;

use super::Home;

fn open() -> LocalMarkdown {
    testing::open(json!({"durable": false})).unwrap()
}

fn ask(provider: &mut LocalMarkdown, question: &str) -> Vec<String> {
    let found = provider.query(testing::query(question)).unwrap().snippets;
    found.into_iter().map(|snippet| snippet.text).collect()
}

/// What storage has of a text, index and files.
fn holds(text: &str) -> bool {
    storage::scan("").any(|entry| {
        let (key, value) = entry.unwrap();
        [key, value].iter().any(|part| String::from_utf8_lossy(part).contains(text))
    })
}

#[test]
fn records_are_kept_corrected_listed_and_forgotten() {
    let mut provider = open();
    let texts = ["The north archive has letters", "The south archive has maps"];
    let ids = provider.upsert_records(testing::upsert("op", &texts)).unwrap().records;
    assert_eq!(ask(&mut provider, "archive").len(), 2);
    let write =
        RecordWrite { text: "The north archive has seals".to_owned(), ..Default::default() };
    let correction = CorrectRequest {
        operation_id: "op2".to_owned(),
        id: ids[0].clone(),
        scope: testing::scope(),
        patch: Patch::Replacement(write),
    };
    memhost_sdk::Correction::correct(&mut provider, correction).unwrap();
    assert_eq!(ask(&mut provider, "seals"), ["The north archive has seals"]);
    assert!(ask(&mut provider, "letters").is_empty() && !holds("letters"));
    let page = provider.list_records(testing::list(None, 10)).unwrap();
    assert_eq!(page.items.len(), 2);

    let mut provider: LocalMarkdown = testing::reopen().unwrap();
    assert_eq!(ask(&mut provider, "seals"), ["The north archive has seals"]);
    provider.forget(testing::forget(ids, testing::scope())).unwrap();
    assert!(ask(&mut provider, "archive").is_empty());
    assert!(!holds("seals") && !holds("maps"), "a forgotten text stays in storage");
    let mut provider: LocalMarkdown = testing::reopen().unwrap();
    assert!(ask(&mut provider, "archive").is_empty());
}

/// The index is made of the files again, and what was written when it was not stored is found.
#[test]
fn a_lost_index_is_made_again_from_the_files() {
    let mut provider = open();
    let texts: Vec<String> = (0..300).map(|n| format!("record number{n} of many")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    provider.upsert_records(testing::upsert("op", &texts)).unwrap();
    let index: Vec<Vec<u8>> = storage::scan("")
        .map(|entry| entry.unwrap().0)
        .filter(|key| !key.starts_with(b"markdown/"))
        .collect();
    assert!(!index.is_empty());
    let mut batch = Batch::new();
    index.into_iter().for_each(|key| batch.delete_raw(key));
    batch.apply().unwrap();
    let mut provider: LocalMarkdown = testing::reopen().unwrap();
    assert_eq!(ask(&mut provider, "number217"), ["record number217 of many"]);
    let page = provider.list_records(testing::list(None, 1_000)).unwrap();
    assert_eq!(page.items.len(), 300);
}

/// Files stay where they are: nothing is lost from sight by a grant that comes or goes.
#[test]
fn a_directory_that_is_granted_or_taken_later_hides_nothing() {
    let mut provider = open();
    provider.capture(testing::capture("op", "The north archive has letters")).unwrap();
    testing::grant(vec![Grant::Directory(1 << 30)]);
    let mut provider: LocalMarkdown = testing::reopen().unwrap();
    assert_eq!(ask(&mut provider, "letters").len(), 1);

    let mut home = Home::new();
    home.keep(&["The south archive has maps"]);
    testing::grant(Vec::new());
    let refused = testing::reopen::<LocalMarkdown>().err().unwrap();
    assert!(matches!(&refused, Error::Unsupported(why) if why.contains("grant")), "{refused:?}");
    testing::grant(vec![Grant::Directory(1 << 30)]);
    home.restart();
    assert_eq!(home.ask("maps").len(), 1);
}
