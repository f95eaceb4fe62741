//! The provider against what mem0's own server answered. `just vendors-record` starts that server
//! and runs this test with `MEMHOST_RECORD_MEM0`, which sends the requests there and writes the
//! recording anew.

use memhost_mem0::Mem0;
use memhost_sdk::testing::recorded::Recording;
use memhost_sdk::testing::{capture, forget, list, query, scope, upsert};
use memhost_sdk::types::*;
use memhost_sdk::{Correction, Erasure, Health, Provider};
use serde_json::json;

use super::open;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorded/server.jsonl");
const OF: &str = "mem0ai 2.2.1 and its server";

/// What the provider does with a server, and what must come out.
fn work_with(mem0: &mut Mem0) {
    let company = Scope::company("company");
    mem0.forget_scope(ForgetScopeRequest {
        operation_id: "op-0".to_owned(),
        scope: company.clone(),
    })
    .unwrap();
    assert!(mem0.check_health().unwrap().summary.contains("answers"));

    let green = mem0.capture(capture("op-1", "The gate is green.")).unwrap().records.remove(0);
    assert_eq!(
        mem0.capture(capture("op-1", "The gate is green.")).unwrap().records,
        std::slice::from_ref(&green)
    );
    let turn = |role: &str, text: &str| Turn {
        role: role.to_owned(),
        name: None,
        text: text.to_owned(),
        at: None,
    };
    let turns =
        vec![turn("user", "I like green tea."), turn("assistant", "There is nothing better.")];
    let talk = CaptureRequest {
        mode: CaptureMode::CaptureResidue,
        payload: SourcePayload { turns, ..SourcePayload::default() },
        ..capture("op-2", "")
    };
    let learnt = mem0.capture(talk).unwrap();
    assert_eq!((learnt.records.len(), learnt.jobs.len()), (1, 0));

    let write = |text: &str| UpsertRequest {
        records: vec![RecordWrite {
            id: Some("fact-1".to_owned()),
            text: text.to_owned(),
            metadata: Some(r#"{"topic":"door","n":1.50}"#.to_owned()),
            expires_at: Some("2030-01-01T12:00:00Z".to_owned()),
            ..RecordWrite::default()
        }],
        ..upsert(text, &[])
    };
    assert_eq!(mem0.upsert_records(write("The door is red.")).unwrap().records, ["fact-1"]);
    assert_eq!(mem0.upsert_records(write("The door is blue.")).unwrap().records, ["fact-1"]);

    let hits = mem0.query(query("which colour is the gate?")).unwrap().snippets;
    assert_eq!(
        (hits[0].id.as_str(), hits[0].text.as_str(), hits.len()),
        (green.as_str(), "The gate is green.", 2)
    );
    let rank = |snippet: &Snippet| match snippet.score {
        Score::Rank(score) => score,
        other => panic!("{other:?} is no rank"),
    };
    assert!(hits.windows(2).all(|pair| rank(&pair[0]) >= rank(&pair[1])), "best first");
    let filter = |json: &str| QueryRequest {
        metadata_filter: Some(json.to_owned()),
        ..query("colour door gate tea")
    };
    let found = mem0.query(filter(r#"{"topic":"door"}"#)).unwrap().snippets;
    assert_eq!((found.len(), found[0].text.as_str()), (1, "The door is blue."));
    assert_eq!(found[0].metadata.as_deref(), Some(r#"{"topic":"door","n":1.50}"#));
    assert_eq!(found[0].expires_at.as_deref(), Some("2030-01-01T12:00:00Z"));
    assert!(mem0.query(filter(r#"{"topic":"gate"}"#)).unwrap().snippets.is_empty());
    assert_eq!(mem0.query(query("")).unwrap().snippets.len(), 3);
    let other = Scope { agent_id: Some("other".to_owned()), ..company.clone() };
    assert!(
        mem0.query(QueryRequest { scope: other, ..query("gate") }).unwrap().snippets.is_empty()
    );

    let first = mem0.list_records(list(None, 2)).unwrap();
    let Continuation::Next(cursor) = first.continuation else { panic!("there are three") };
    let second = mem0.list_records(list(Some(cursor), 2)).unwrap();
    assert_eq!(
        (first.items.len(), second.items.len(), second.continuation),
        (2, 1, Continuation::End)
    );

    let patch = Patch::Replacement(RecordWrite {
        text: "The gate is yellow.".to_owned(),
        ..RecordWrite::default()
    });
    mem0.correct(CorrectRequest {
        operation_id: "op-3".to_owned(),
        id: green.clone(),
        scope: scope(),
        patch,
    })
    .unwrap();
    let corrected = mem0.get_record(green.clone(), scope()).unwrap().snippet.unwrap();
    assert_eq!(corrected.text, "The gate is yellow.");
    assert!(corrected.updated_at > corrected.created_at);

    let gone = ["00000000-0000-4000-8000-000000000000", "nobody"].map(str::to_owned);
    assert!(gone.iter().all(|id| mem0.get_record(id.clone(), scope()).unwrap().snippet.is_none()));
    let ids = vec![green.clone(), "fact-1".to_owned(), gone[0].clone(), green.clone()];
    let effects: Vec<_> = mem0
        .forget(forget(ids, scope()))
        .unwrap()
        .outcomes
        .into_iter()
        .map(|outcome| outcome.effect)
        .collect();
    let (kept, none) = (ForgetEffect::HistoryKept, ForgetEffect::NotFound);
    assert_eq!(effects, [kept, kept, none, none]);
    assert!(mem0.get_record(green, scope()).unwrap().snippet.is_none());
    mem0.forget_scope(ForgetScopeRequest { operation_id: "op-4".to_owned(), scope: company })
        .unwrap();
    assert!(mem0.list_records(list(None, 2)).unwrap().items.is_empty());
}

#[test]
fn the_server_of_mem0_answers_as_expected() {
    let mut mem0 = open("self-hosted", json!({"userId": "recorded"}));
    let recording = Recording::serve(
        FILE,
        OF,
        "MEMHOST_RECORD_MEM0",
        &[("x-api-key", "memhost-vendors-key")],
        &[],
    );
    work_with(&mut mem0);
    recording.end();
}
