//! Records as the contract has them.

use memhost_sdk::types::{
    CaptureMode, CaptureRequest, Continuation, ForgetEffect, HookContext, HookKind, ListRequest,
    QueryRequest, RecordWrite, UpsertRequest,
};
use memhost_sdk::{Provider, testing};
use serde_json::json;

use super::{Home, fact, refused, scope, user};

fn capture(operation: &str, text: &str) -> CaptureRequest {
    CaptureRequest { scope: user(), ..testing::capture(operation, text) }
}

fn hooked(operation: &str) -> CaptureRequest {
    let hook = HookContext {
        hook_kind: HookKind::ManualCapture,
        triggered_at: "2026-03-01T12:00:00Z".to_owned(),
        actor_agent_id: None,
        heartbeat_run_id: None,
    };
    CaptureRequest { hook: Some(hook), ..capture(operation, "likes tea") }
}

#[test]
fn a_fact_comes_back_as_it_was_written() {
    let mut home = Home::new();
    let metadata = json!({"source": "ai", "a": {"b": [1, 2.5, null]}}).to_string();
    let record = RecordWrite {
        text: " likes\ttea\r\n".to_owned(),
        summary: Some("tea".to_owned()),
        metadata: Some(metadata.clone()),
        ..RecordWrite::default()
    };
    let request = UpsertRequest {
        operation_id: "op".to_owned(),
        scope: user(),
        source: Some(testing::source()),
        records: vec![record],
    };
    let id = home.provider.upsert_records(request).unwrap().records.remove(0);
    home.provider = testing::reopen().unwrap();
    let found = home.get(&user(), &id).unwrap();
    assert_eq!((found.text.as_str(), found.summary.as_deref()), (" likes\ttea\r\n", Some("tea")));
    assert_eq!((found.metadata, found.source), (Some(metadata), Some(testing::source())));
    assert!(found.created_at.is_some() && found.created_at == found.updated_at);
}

#[test]
fn the_same_operation_makes_one_fact() {
    let mut home = Home::new();
    let first = home.provider.capture(capture("op", "likes tea")).unwrap().records;
    assert_eq!(home.provider.capture(capture("op", "likes tea")).unwrap().records, first);
    let event = home.provider.capture(hooked("op-2")).unwrap().records;
    assert_eq!(home.provider.capture(hooked("op-2")).unwrap().records, event);
    assert_ne!(event, first);
    let other = home.provider.capture(hooked("op-4")).unwrap().records;
    assert_ne!(other, event, "with another id it is another event, although the hook is equal");
    let upsert = || UpsertRequest { scope: user(), ..testing::upsert("op-5", &["one", "two"]) };
    let ids = home.provider.upsert_records(upsert()).unwrap().records;
    assert_eq!(home.provider.upsert_records(upsert()).unwrap().records, ids);
    assert_eq!(home.list(&user()).len(), 5);
    // An operation whose id is no plain one, and one whose record's id somebody has taken.
    let odd = home.provider.capture(capture("../ü", "odd")).unwrap().records;
    assert_eq!(home.provider.capture(capture("../ü", "odd")).unwrap().records, odd);
    home.try_write(&user(), vec![RecordWrite { id: Some("op-6".to_owned()), ..fact("taken") }])
        .unwrap();
    assert_eq!(home.provider.capture(capture("op-6", "mine")).unwrap().records, ["op-6~1"]);
    assert_eq!(home.provider.capture(capture("op-6", "mine")).unwrap().records, ["op-6~1"]);
    assert_eq!(home.list(&user()).len(), 8);
}

#[test]
fn a_write_under_an_id_replaces() {
    let mut home = Home::new();
    let named = |text: &str| RecordWrite { id: Some("../ü 1".to_owned()), ..fact(text) };
    for text in ["first", "second"] {
        assert_eq!(home.try_write(&user(), vec![named(text)]).unwrap(), ["../ü 1"]);
    }
    assert_eq!(home.texts(&user()), ["second"]);
    let (field, message) =
        refused(home.try_write(&scope("", "other", ""), vec![fact("x"), named("third")]));
    assert_eq!(field, "records.1.id", "{message}");
    assert!(home.list(&scope("", "other", "")).is_empty());
    home.provider.forget(testing::forget(vec!["../ü 1".to_owned()], user())).unwrap();
    home.try_write(&scope("", "other", ""), vec![named("third")]).unwrap();
    assert_eq!(
        home.texts(&scope("", "other", "")),
        ["third"],
        "an id that is free again is anybody's"
    );
}

#[test]
fn raw_material_makes_no_fact() {
    let mut home = Home::new();
    let request = CaptureRequest {
        mode: CaptureMode::CaptureResidue,
        ..capture("op", &"talk ".repeat(1_000))
    };
    assert!(home.provider.capture(request).unwrap().records.is_empty());
    assert!(home.list(&user()).is_empty());
    let mut object = capture("op", "");
    object.payload.text = None;
    object.payload.object = Some("{}".to_owned());
    assert_eq!(refused(home.provider.capture(object)).0, "payload.text");
    let mut both = capture("op", "likes tea");
    both.payload.metadata = Some(json!({"source": "user", "n": 1}).to_string());
    both.metadata = Some(json!({"n": 2}).to_string());
    home.provider.capture(both).unwrap();
    assert_eq!(home.list(&user())[0].metadata.as_deref(), Some(r#"{"n":2,"source":"user"}"#));
}

#[test]
fn forgetting_removes_the_named_facts() {
    let mut home = Home::new();
    let mut ids: Vec<String> = (0..5).map(|n| home.write(&user(), &format!("fact {n}"))).collect();
    ids.push(home.write(&scope("", "", "p"), "of a workspace"));
    ids.push(ids[0].clone());
    ids.push("nothing".to_owned());
    let outcomes =
        home.provider.forget(testing::forget(ids.clone(), scope("", "u", "p"))).unwrap().outcomes;
    let effects: Vec<ForgetEffect> = outcomes.iter().map(|outcome| outcome.effect).collect();
    assert_eq!(effects[..6], [ForgetEffect::Hard; 6]);
    assert_eq!(effects[6..], [ForgetEffect::NotFound; 2]);
    assert_eq!(outcomes.into_iter().map(|outcome| outcome.id).collect::<Vec<_>>(), ids);
    assert!(home.list(&scope("", "", "")).is_empty());
    assert_eq!(memhost_sdk::storage::scan("").count(), 0, "nothing is left of them");
}

#[test]
fn a_list_is_complete_while_others_write() {
    let mut home = Home::new();
    let standing: Vec<String> = (0..20)
        .map(|n| {
            home.write(
                &if n % 2 == 0 { user() } else { scope("", "", "p") },
                &format!("standing {n}"),
            )
        })
        .collect();
    let all = scope("", "u", "p");
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let request = ListRequest { scope: all.clone(), ..testing::list(cursor, 3) };
        let page = home.provider.list_records(request).unwrap();
        seen.extend(page.items.into_iter().map(|item| item.id));
        let passing = home.write(&user(), "passing");
        home.provider.forget(testing::forget(vec![passing], user())).unwrap();
        match page.continuation {
            Continuation::Next(next) => cursor = Some(next),
            _ => break,
        }
        assert!(seen.len() < 100);
    }
    for id in &standing {
        assert_eq!(seen.iter().filter(|found| *found == id).count(), 1);
    }
    for junk in ["", "x", "00.1", "0g.1", "6c.1x"] {
        let request = ListRequest { scope: all.clone(), ..testing::list(Some(junk.to_owned()), 3) };
        if junk != "00.1" {
            assert_eq!(refused(home.provider.list_records(request)).0, "cursor", "{junk}");
        }
    }
}

#[test]
fn duplicates_are_detected_if_configured() {
    let mut home = Home::new();
    home.write(&user(), "Likes tea");
    home.write(&user(), "likes  TEA.");
    assert_eq!(home.list(&user()).len(), 2);
    let mut home = Home::with(json!({"detectDuplicates": true}));
    let first = home.write(&user(), "Likes tea");
    assert_eq!(home.write(&user(), "likes  TEA."), first);
    assert_eq!(home.texts(&user()), ["Likes tea"]);
    home.write(&user(), "Likes green tea");
    home.write(&scope("", "other", ""), "Likes tea");
    assert_eq!(home.list(&user()).len(), 2);
    let ids = home.try_write(&user(), vec![fact("Knows Rust"), fact("knows rust")]).unwrap();
    assert_eq!(ids[0], ids[1], "within a request as well");
}

#[test]
fn a_search_finds_nothing_for_nonsense_in_ordinary_words() {
    let mut home = Home::new();
    for text in
        ["The office is in the old mill", "What he drinks is tea", "Doesn't like to be called"]
    {
        home.write(&user(), text);
    }
    let mut texts = |query: &str| {
        let request = QueryRequest { scope: user(), ..testing::query(query) };
        let found = home.provider.query(request).unwrap().snippets;
        found.into_iter().map(|hit| hit.text).collect::<Vec<_>>()
    };
    for nonsense in [
        "what is the weather in the Bahamas",
        "zzqx the blorf of wibble",
        "What is it?",
        "who doesn't",
    ] {
        assert_eq!(texts(nonsense), Vec::<String>::new(), "{nonsense}");
    }
    assert_eq!(texts("what is in the mill?"), ["The office is in the old mill"]);
    assert_eq!(texts("").len(), 3, "without a word it is a list");
}

#[test]
fn every_spelling_of_a_word_and_words_without_spaces_are_found() {
    let mut home = Home::new();
    for (number, (text, question)) in [
        ("Lives in İstanbul", "istanbul"),
        ("Wohnt in der Goethestraße", "GOETHESTRASSE"),
        ("πίνει καφέ", "καφε"),
        ("likes cafe\u{301}s", "cafés"),
        ("彼は東京で働いている", "東京"),
        ("用户不喜欢会议", "会议"),
        ("사용자는 회의를 싫어한다", "회의"),
        ("ทำงานทุกวันศุกร์", "วันศุกร์"),
    ]
    .into_iter()
    .enumerate()
    {
        home.provider.capture(capture(&format!("op-{number}"), text)).unwrap();
        let request = QueryRequest { scope: user(), ..testing::query(question) };
        let found = home.provider.query(request).unwrap().snippets;
        assert!(found.first().is_some_and(|first| first.text == text), "{question}: {found:?}");
    }
}
