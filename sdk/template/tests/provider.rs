//! Tests of the provider, run natively with `cargo test`. `memhost plugin check` tests more, on the
//! component.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use memhost_sdk::{Provider, testing, types::*};
use memory_template::Memory;
use serde_json::json;

fn open() -> Memory {
    testing::open::<Memory>(json!({})).unwrap()
}

fn texts(snippets: Vec<Snippet>) -> Vec<String> {
    snippets.into_iter().map(|snippet| snippet.text).collect()
}

fn found(memory: &mut Memory, question: &str) -> Vec<String> {
    texts(memory.query(testing::query(question)).unwrap().snippets)
}

fn agent(name: &str) -> Scope {
    Scope { agent_id: Some(name.to_owned()), ..testing::scope() }
}

#[test]
fn the_best_answer_comes_first() {
    let mut memory = open();
    memory.capture(testing::capture("op-1", "The gate is green")).unwrap();
    memory.capture(testing::capture("op-2", "The key of the gate is in the drawer")).unwrap();
    assert_eq!(
        found(&mut memory, "Where is the key of the gate?")[0],
        "The key of the gate is in the drawer"
    );
    assert_eq!(found(&mut memory, "Is the gate green?")[0], "The gate is green");
    assert!(found(&mut memory, "the").is_empty(), "an ignored word finds nothing");
}

#[test]
fn a_restart_loses_nothing() {
    let id =
        open().capture(testing::capture("op-1", "The gate is green")).unwrap().records.remove(0);
    let mut memory: Memory = testing::reopen().unwrap();
    let record = memory.get_record(id, testing::scope()).unwrap().snippet.unwrap();
    assert_eq!(
        (record.text.as_str(), record.source),
        ("The gate is green", Some(testing::source()))
    );
}

#[test]
fn a_repeated_capture_makes_no_second_record() {
    let mut memory = open();
    let first = memory.capture(testing::capture("op-1", "The gate is green")).unwrap();
    assert_eq!(
        memory.capture(testing::capture("op-1", "The gate is green")).unwrap().records,
        first.records
    );
    let mut delivered = |operation: &str| {
        let hook = HookContext {
            hook_kind: HookKind::PostRunCapture,
            triggered_at: "2026-01-02T03:04:05Z".to_owned(),
            actor_agent_id: None,
            heartbeat_run_id: None,
        };
        let request =
            CaptureRequest { hook: Some(hook), ..testing::capture(operation, "The run ended") };
        memory.capture(request).unwrap().records
    };
    assert_eq!(delivered("op-2"), delivered("op-2"));
    assert_ne!(delivered("op-2"), delivered("op-3"), "another id is another event");
    assert_eq!(memory.list_records(testing::list(None, 10)).unwrap().items.len(), 3);
}

#[test]
fn agents_do_not_see_each_others_records() {
    let mut memory = open();
    let mut private = testing::upsert("op-1", &["Ada's gate"]);
    private.scope = agent("ada");
    let ids = memory.upsert_records(private).unwrap().records;
    let bob = || agent("bob");
    let asked = QueryRequest { scope: bob(), ..testing::query("gate") };
    assert!(memory.query(asked).unwrap().snippets.is_empty());
    assert!(memory.get_record(ids[0].clone(), bob()).unwrap().snippet.is_none());
    assert_eq!(
        memory.forget(testing::forget(ids.clone(), bob())).unwrap().outcomes[0].effect,
        ForgetEffect::NotFound
    );
    let record = RecordWrite {
        id: Some(ids[0].clone()),
        text: "Bob's gate".to_owned(),
        ..RecordWrite::default()
    };
    let request =
        UpsertRequest { scope: bob(), records: vec![record], ..testing::upsert("op-2", &[]) };
    assert!(memory.upsert_records(request).is_err(), "an id of another agent is taken");
}

#[test]
fn a_list_is_complete_while_others_write() {
    let mut memory = open();
    let standing = memory
        .upsert_records(testing::upsert("op-1", &["one", "two", "three", "four", "five"]))
        .unwrap();
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let page = memory.list_records(testing::list(cursor, 2)).unwrap();
        assert!(page.items.len() <= 2);
        seen.extend(page.items.into_iter().map(|item| item.id));
        let passing = memory
            .capture(testing::capture(&format!("passing-{}", seen.len()), "passing"))
            .unwrap();
        memory.forget(testing::forget(passing.records, testing::scope())).unwrap();
        match page.continuation {
            Continuation::Next(next) => cursor = Some(next),
            _ => break,
        }
    }
    assert_eq!(seen, standing.records);
}

#[test]
fn metadata_selects() {
    let mut memory = open();
    for (id, team) in [("op-1", "red"), ("op-2", "blue")] {
        let metadata = Some(json!({ "team": team }).to_string());
        memory
            .capture(CaptureRequest {
                metadata,
                ..testing::capture(id, &format!("the {team} meeting"))
            })
            .unwrap();
    }
    let metadata_filter = Some(r#"{"team":"blue"}"#.to_owned());
    let asked = QueryRequest { metadata_filter, ..testing::query("meeting") };
    assert_eq!(texts(memory.query(asked).unwrap().snippets), ["the blue meeting"]);
}

#[test]
fn a_forgotten_record_is_gone() {
    let mut memory = open();
    let ids = memory.capture(testing::capture("op-1", "The gate is green")).unwrap().records;
    let mut effect = || {
        memory.forget(testing::forget(ids.clone(), testing::scope())).unwrap().outcomes[0].effect
    };
    assert_eq!((effect(), effect()), (ForgetEffect::Hard, ForgetEffect::NotFound));
    assert!(found(&mut memory, "green gate").is_empty());
}

#[test]
fn a_wrong_configuration_names_the_field() {
    for (config, pointer) in [
        (r#"{"ignoredWords":["The"]}"#, "/ignoredWords/0"),
        (r#"{"ignoredWord":[]}"#, "/ignoredWord"),
    ] {
        let errors = memhost_sdk::check_config::<Memory>(config).unwrap_err();
        assert_eq!(errors[0].pointer, pointer, "{}", errors[0].message);
    }
}
