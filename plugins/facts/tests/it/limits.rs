//! What is too long and what is too much.

use memhost_sdk::types::{CorrectRequest, Error, Patch};
use memhost_sdk::{Correction, testing};
use serde_json::json;

use super::{Home, fact, fact_with, refused, scope, user};

fn quota<T: std::fmt::Debug>(answer: Result<T, Error>) -> String {
    match answer.unwrap_err() {
        Error::QuotaExceeded(message) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_fact_has_200_characters_not_bytes() {
    let mut home = Home::new();
    home.write(&user(), &"ä".repeat(200));
    let (field, message) =
        refused(home.try_write(&user(), vec![fact("fine"), fact(&"x".repeat(201))]));
    assert_eq!(field, "records.1.text");
    assert!(
        message.contains("201")
            && message.contains("at most 200")
            && message.contains("maxCharacters"),
        "{message}"
    );
    assert_eq!(home.list(&user()).len(), 1, "all or none");
    let mut long = testing::capture("op", &"x".repeat(201));
    long.scope = user();
    assert_eq!(refused(memhost_sdk::Provider::capture(&mut home.provider, long)).0, "payload.text");
    for empty in ["", " \n\u{a0}"] {
        assert_eq!(refused(home.try_write(&user(), vec![fact(empty)])).0, "records.0.text");
    }
    let mut short = Home::with(json!({"maxCharacters": 5}));
    short.write(&user(), "12345");
    assert!(refused(short.try_write(&user(), vec![fact("123456")])).1.contains("at most 5"));
}

#[test]
fn the_fifty_first_fact_is_refused() {
    let mut home = Home::new();
    let ids: Vec<String> = (0..50).map(|n| home.write(&user(), &format!("fact {n}"))).collect();
    let message = quota(home.try_write(&user(), vec![fact("one more")]));
    assert!(
        message.contains("50") && message.contains("maxFacts") && message.contains("`user`"),
        "{message}"
    );
    assert_eq!(home.list(&user()).len(), 50);
    // Neither another user nor a workspace is full, and what is there can be written again.
    home.write(&scope("", "other", ""), "theirs");
    home.write(&scope("", "", "p"), "the workspace's");
    let again = memhost_sdk::types::RecordWrite { id: Some(ids[0].clone()), ..fact("changed") };
    assert_eq!(home.try_write(&user(), vec![again]).unwrap(), [ids[0].as_str()]);
    memhost_sdk::Provider::forget(
        &mut home.provider,
        testing::forget(vec![ids[7].clone()], user()),
    )
    .unwrap();
    home.write(&user(), "one more");
    assert_eq!(home.list(&user()).len(), 50);
}

#[test]
fn a_request_over_the_limit_writes_nothing() {
    let mut home = Home::with(json!({"maxFacts": 3}));
    home.write(&user(), "one");
    assert!(
        quota(home.try_write(&user(), vec![fact("two"), fact("three"), fact("four")]))
            .contains('3')
    );
    assert_eq!(home.texts(&user()), ["one"]);
    home.try_write(&user(), vec![fact("two"), fact("three")]).unwrap();
    assert_eq!(home.list(&user()).len(), 3);
}

#[test]
fn metadata_is_bounded_and_checked() {
    let mut home = Home::new();
    let much = json!({"note": "x".repeat(5_000)});
    assert_eq!(
        refused(home.try_write(&user(), vec![fact_with("a", much)])).0,
        "records.0.metadata"
    );
    for (metadata, field) in [
        (json!({"scope": "company"}), "records.0.metadata.scope"),
        (json!({"source": "robot"}), "records.0.metadata.source"),
        (json!([1]), "records.0.metadata"),
    ] {
        assert_eq!(refused(home.try_write(&user(), vec![fact_with("a", metadata)])).0, field);
    }
}

#[test]
fn a_correction_has_the_same_limits() {
    let mut home = Home::new();
    let id = home.write(&user(), "short");
    let request = |text: &str, id: &str| CorrectRequest {
        operation_id: "c".to_owned(),
        id: id.to_owned(),
        scope: user(),
        patch: Patch::Replacement(fact(text)),
    };
    let (field, _) = refused(home.provider.correct(request(&"x".repeat(201), &id)));
    assert_eq!(field, "patch.record.text");
    home.provider.correct(request("shorter", &id)).unwrap();
    assert_eq!(home.texts(&user()), ["shorter"]);
    assert!(matches!(home.provider.correct(request("x", "nothing")), Err(Error::NotFound(_))));
    let words = CorrectRequest {
        patch: Patch::Instruction("say it shorter".to_owned()),
        ..request("", &id)
    };
    assert!(matches!(home.provider.correct(words), Err(Error::Unsupported(_))));
    assert_eq!(home.preamble(&user()).0.unwrap(), "## About This User\n\n- shorter\n\n");
}
