//! Lists are stable.

use std::collections::BTreeMap;

use memhost_sdk::types::*;
use memhost_sdk::{Provider, testing};

use super::Home;

#[test]
fn every_remaining_record_is_listed_once_during_writes() {
    let mut home = Home::new();
    for n in 0..50 {
        home.put(&format!("stays{n}"), "text");
        home.put(&format!("goes{n}"), "text");
    }
    std::fs::write(home.path().join("by-hand.md"), "text").unwrap();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut cursor = None;
    for page in 0.. {
        let found = home.provider.list_records(testing::list(cursor, 7)).unwrap();
        assert!(found.items.len() <= 7);
        found.items.iter().for_each(|item| *seen.entry(item.id.clone()).or_default() += 1);
        home.put(&format!("new{page}"), "text");
        home.put(&format!("stays{}", (page * 13) % 50), "another text");
        home.provider
            .forget(testing::forget(vec![format!("goes{}", 49 - page % 50)], testing::scope()))
            .unwrap();
        if page == 5 {
            home.restart();
        }
        if page == 8 {
            testing::lose_storage();
            home.restart();
        }
        match found.continuation {
            Continuation::Next(next) => cursor = Some(next),
            Continuation::End => break,
            Continuation::CannotContinue => panic!("it can"),
        }
    }
    assert!(seen.values().all(|times| *times == 1), "{seen:?}");
    assert!((0..50).all(|n| seen.contains_key(&format!("stays{n}"))), "{seen:?}");
    assert!(seen.contains_key("file:by-hand.md"));
}

#[test]
fn lists_are_in_order_of_creation_and_filtered() {
    let mut home = Home::new();
    let write = |n: usize| RecordWrite {
        id: Some(format!("{}", 100 - n)),
        text: format!("text {n}"),
        metadata: Some(format!(
            r#"{{"even":{},"deep":{{"a":[1,null],"b":{n}}}}}"#,
            n.is_multiple_of(2)
        )),
        ..RecordWrite::default()
    };
    home.write("op", (0..20).map(write).collect(), testing::scope());
    let filtered = |filter: &str| ListRequest {
        metadata_filter: Some(filter.to_owned()),
        ..testing::list(None, 1_000)
    };
    let mut texts = |filter: &str| -> Vec<String> {
        let page = home.provider.list_records(filtered(filter)).unwrap();
        assert_eq!(page.continuation, Continuation::End);
        page.items.into_iter().map(|item| item.text).collect()
    };
    assert_eq!(texts("{}"), (0..20).map(|n| format!("text {n}")).collect::<Vec<_>>());
    assert_eq!(texts(r#"{"even":true}"#).len(), 10);
    assert_eq!(texts(r#"{"deep":{"b":3,"a":[1,null]}}"#), ["text 3"]);
    assert!(texts(r#"{"deep":{"b":3}}"#).is_empty(), "a member is equal or not");
    assert!(texts(r#"{"even":"true"}"#).is_empty() && texts(r#"{"missing":null}"#).is_empty());
    let refused = home.provider.list_records(filtered("[]")).unwrap_err();
    assert!(matches!(
        refused,
        Error::InvalidRequest(
            InvalidRequest { field: Some(field), .. }
        ) if field == "metadataFilter",
    ));
}

#[test]
fn an_invalid_cursor_is_refused() {
    let mut home = Home::new();
    for junk in ["", "id", "1.00", "\u{0}", "1.zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"] {
        let refused =
            home.provider.list_records(testing::list(Some(junk.to_owned()), 5)).unwrap_err();
        let Error::InvalidRequest(InvalidRequest { field, message }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(field.as_deref(), Some("cursor"));
        assert!(message.contains("start again without one"), "{message}");
    }
}
