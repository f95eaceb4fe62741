//! Tests of the provider, run natively with `cargo test` against the service in memory. `memhost
//! plugin check` tests more, on the component and the service itself.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod notebook;

use memhost_sdk::http::{Failure, Phase};
use memhost_sdk::testing::http::{Answer, sent};
use memhost_sdk::{Correction, Health, Provider, testing, types::*};
use memory_template_http::Memory;
use serde_json::json;

const URL: &str = "https://notes.example.com";

fn open() -> Memory {
    testing::open::<Memory>(json!({"url": URL})).unwrap()
}

fn found(memory: &mut Memory, question: &str) -> Vec<String> {
    memory
        .query(testing::query(question))
        .unwrap()
        .snippets
        .into_iter()
        .map(|snippet| snippet.text)
        .collect()
}

#[test]
fn what_is_captured_is_found_with_its_source_and_forgotten() {
    notebook::serve();
    let mut memory = open();
    let id =
        memory.capture(testing::capture("op-1", "The gate is green")).unwrap().records.remove(0);
    assert_eq!(found(&mut memory, "gate"), ["The gate is green"]);
    let read = memory.get_record(id.clone(), testing::scope()).unwrap().snippet.unwrap();
    assert_eq!(read.source, Some(testing::source()));
    let request = testing::forget(vec![id.clone(), "nobody".to_owned()], testing::scope());
    let effects: Vec<_> =
        memory.forget(request).unwrap().outcomes.into_iter().map(|one| one.effect).collect();
    assert_eq!(effects, [ForgetEffect::Hard, ForgetEffect::NotFound]);
    assert!(memory.get_record(id, testing::scope()).unwrap().snippet.is_none());
}

#[test]
fn the_key_is_only_named() {
    notebook::serve();
    open().check_health().unwrap();
    assert_eq!(sent()[0].header("authorization"), Some("Bearer {{secret:NOTES_API_KEY}}"));
}

#[test]
fn a_write_whose_answer_is_lost_is_there_once() {
    let mut losses = 1;
    let notes = notebook::serve_behind(move |asked, answer| {
        let answered = answer();
        if asked.method == "POST" && losses > 0 {
            losses -= 1;
            return Err(Failure::MaybeSent(Phase::Response, "the connection broke".to_owned()));
        }
        Ok(answered)
    });
    let mut memory = open();
    let first = memory.capture(testing::capture("op-1", "The gate is green"));
    let again = memory.capture(testing::capture("op-1", "The gate is green")).unwrap();
    assert!(first.is_err() || first.unwrap().records == again.records);
    assert_eq!(notes.borrow().len(), 1);
}

#[test]
fn agents_do_not_see_each_others_records() {
    notebook::serve();
    let mut memory = open();
    let of = |agent: &str| Scope { agent_id: Some(agent.to_owned()), ..testing::scope() };
    let mut request = testing::capture("op-1", "The gate is green");
    request.scope = of("ada");
    memory.capture(request).unwrap();
    let mut ask = |agent: &str| {
        let request = QueryRequest { scope: of(agent), ..testing::query("gate") };
        memory.query(request).unwrap().snippets.len()
    };
    assert_eq!((ask("ada"), ask("carol")), (1, 0));
}

#[test]
fn a_record_is_corrected_in_place() {
    notebook::serve();
    let mut memory = open();
    let id =
        memory.capture(testing::capture("op-1", "The gate is green")).unwrap().records.remove(0);
    let new = RecordWrite { text: "The gate is red".to_owned(), ..RecordWrite::default() };
    let request = CorrectRequest {
        operation_id: "op-2".to_owned(),
        scope: testing::scope(),
        id: id.clone(),
        patch: Patch::Replacement(new),
    };
    assert_eq!(memory.correct(request).unwrap().record_id, id);
    assert_eq!(found(&mut memory, "gate"), ["The gate is red"]);
}

#[test]
fn a_service_that_is_down_is_unavailable() {
    notebook::serve_behind(|_, _| Ok(Answer::json(503, json!({"error": "at rest"}))));
    let refused = open().query(testing::query("gate")).unwrap_err();
    assert!(matches!(refused, Error::Unavailable(_)), "{refused:?}");
}
