//! Records that are written as they are.

use memhost_sdk::types::*;
use memhost_sdk::{Correction, Provider, testing};
use serde_json::json;

use super::{Home, metadata, refusal, texts};

#[test]
fn a_record_is_stored_unchanged() {
    let mut home = Home::new();
    let id = home
        .put(" Odd\r\n text\u{0} ", json!({"kind": "fact", "a": {"b": [1, 2.5, null]}}))
        .unwrap();
    home.restart();
    let item = home.get(&id).unwrap();
    assert_eq!(item.text, " Odd\r\n text\u{0} ");
    let told = metadata(&item);
    assert_eq!(
        (&told["a"], &told["kind"], &told["confidence"]),
        (&json!({"b": [1, 2.5, null]}), &json!("fact"), &json!(1.0))
    );
}

#[test]
fn a_record_without_a_kind_is_a_note() {
    let mut home = Home::new();
    let id = home.put("anything", json!({"confidence": 0.6})).unwrap();
    assert_eq!(metadata(&home.get(&id).unwrap())["kind"], "note");
    home.put("less", json!({"confidence": 0.59})).unwrap();
    assert_eq!(texts(home.pending()), ["less"]);
}

#[test]
fn a_captured_record_gets_the_kind_of_the_matching_rule() {
    let mut home = Home::new();
    for (operation, text, kind) in
        [("a", "We chose SQLite over Postgres.", "decision"), ("b", "Blue.", "note")]
    {
        let id =
            home.provider.capture(testing::capture(operation, text)).unwrap().records.remove(0);
        assert_eq!(metadata(&home.get(&id).unwrap())["kind"], kind);
        let again = home.provider.capture(testing::capture(operation, text)).unwrap();
        assert_eq!(again.records, [id]);
    }
    assert_eq!(home.list().len(), 2);
}

#[test]
fn every_kind_has_its_own_threshold() {
    let mut home = Home::with(json!({"workflow": "strict"}));
    for kind in memhost_taxonomy::Kind::ALL {
        let least = kind.threshold();
        home.put("enough", json!({"kind": kind.name(), "confidence": least})).unwrap();
        home.put("too little", json!({"kind": kind.name(), "confidence": least - 0.001})).unwrap();
    }
    assert!(texts(home.list()).iter().all(|text| text == "enough") && home.list().len() == 11);
    assert!(
        texts(home.pending()).iter().all(|text| text == "too little") && home.pending().len() == 11
    );
    let mut strict = Home::with(json!({"thresholds": {"todo": 0.9}}));
    strict.put("x", json!({"kind": "todo", "confidence": 0.8})).unwrap();
    assert!(strict.list().is_empty());
}

#[test]
fn unreadable_records_are_refused_and_nothing_is_written() {
    let mut home = Home::new();
    for (member, value) in [
        ("kind", json!("opinion")),
        ("confidence", json!(1.5)),
        ("tags", json!("x")),
        ("expiresAt", json!("soon")),
    ] {
        let bad = RecordWrite {
            text: "b".into(),
            metadata: Some(json!({member: value}).to_string()),
            ..RecordWrite::default()
        };
        let good = RecordWrite { metadata: None, text: "a".into(), ..bad.clone() };
        let request = UpsertRequest { records: vec![good, bad], ..testing::upsert("op", &[]) };
        let (field, message) = refusal(home.provider.upsert_records(request));
        assert_eq!(field, format!("records.1.metadata.{member}"));
        assert!(!message.is_empty());
    }
    assert!(home.list().is_empty() && home.pending().is_empty());
}

#[test]
fn the_same_operation_again_changes_nothing() {
    let mut home = Home::with(json!({"workflow": "strict"}));
    let id = home.put_as("op", Some("x"), "write to ann@example.org", json!({})).unwrap();
    home.decide(&id, Decision::Approve).unwrap();
    home.put_as("op", Some("x"), "write to ann@example.org", json!({})).unwrap();
    assert_eq!(home.get("x").unwrap().text, "write to [EMAIL]", "the decision stands");
    home.put_as("other", Some("x"), "anew", json!({})).unwrap();
    assert_eq!(home.get("x").unwrap().text, "anew");
    assert_eq!(home.list().len(), 1);
}

#[test]
fn a_forgotten_record_is_gone_with_its_uses() {
    let mut home = Home::new();
    let id = home.put("the fact of the matter", json!({"kind": "fact"})).unwrap();
    home.ask("matter");
    let effects = |response: ForgetResponse| {
        response.outcomes.into_iter().map(|outcome| outcome.effect).collect::<Vec<_>>()
    };
    let twice = home
        .provider
        .forget(testing::forget(vec![id.clone(), id.clone()], testing::scope()))
        .unwrap();
    assert_eq!(effects(twice), [ForgetEffect::Hard, ForgetEffect::NotFound]);
    home.restart();
    assert!(home.get(&id).is_none() && home.list().is_empty() && home.ask("matter").is_empty());
    let waiting = home.put("mail ann@example.org", json!({})).unwrap();
    home.provider.forget(testing::forget(vec![waiting], testing::scope())).unwrap();
    assert!(home.pending().is_empty(), "what waits can be forgotten as well");
}

#[test]
fn a_correction_replaces_the_text_and_keeps_the_kind() {
    let mut home = Home::new();
    let id = home.put("The demo is on Monday", json!({"kind": "fact", "room": 4})).unwrap();
    let write = RecordWrite { text: "The demo is on Tuesday".into(), ..RecordWrite::default() };
    let request = |patch| CorrectRequest {
        operation_id: "c".into(),
        id: id.clone(),
        scope: testing::scope(),
        patch,
    };
    home.provider.correct(request(Patch::Replacement(write))).unwrap();
    let item = home.get(&id).unwrap();
    assert_eq!(item.text, "The demo is on Tuesday");
    assert_eq!((&metadata(&item)["kind"], &metadata(&item)["room"]), (&json!("fact"), &json!(4)));
    let instruction = home.provider.correct(request(Patch::Instruction("later".into())));
    assert!(matches!(instruction, Err(Error::Unsupported(_))));
}

#[test]
fn metadata_that_is_too_large_to_return_is_refused() {
    let mut home = Home::new();
    let (field, message) = refusal(home.put("x", json!({"a": "b".repeat(250 << 10)})));
    assert!(field == "records.0.metadata" && message.contains("larger"), "{message}");
}

#[test]
fn answers_stay_within_the_limit_of_a_call() {
    let mut home = Home::new();
    for n in 0..12 {
        home.put(&format!("{n} blue {}", " ".repeat(900 << 10)), json!({})).unwrap();
    }
    assert!((2..12).contains(&home.ask("blue").len()));
    let page = home.provider.list_records(testing::list(None, 1_000)).unwrap();
    assert!(page.items.len() < 12 && matches!(page.continuation, Continuation::Next(_)));
}
