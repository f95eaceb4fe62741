//! The provider against what the real OpenViking answered. `just vendors-record` starts that server
//! and runs this test with `MEMHOST_RECORD_OPENVIKING`, which sends the requests there and writes
//! the recording anew.

use std::time::Duration;

use memhost_openviking::OpenViking;
use memhost_sdk::testing::recorded::Recording;
use memhost_sdk::testing::{capture, forget, list, query, scope, upsert};
use memhost_sdk::types::*;
use memhost_sdk::{Browse, Correction, Erasure, Extraction, Health, Provider};
use serde_json::json;

use super::open;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorded/server.jsonl");
const ADDRESS: &str = "MEMHOST_RECORD_OPENVIKING";

/// Asks until the job has ended. The real server takes some ten seconds.
fn ended(viking: &mut OpenViking, id: &str) -> JobResult {
    loop {
        let found = viking.get_job(id.to_owned()).unwrap().unwrap();
        if found.job.status != JobStatus::Running {
            return found;
        }
        if std::env::var_os(ADDRESS).is_some() {
            std::thread::sleep(Duration::from_secs(2));
        }
    }
}

fn residue(operation_id: &str, text: &str) -> CaptureRequest {
    CaptureRequest { mode: CaptureMode::CaptureResidue, ..capture(operation_id, text) }
}

/// What the provider does with a server, and what must come out.
fn work_with(viking: &mut OpenViking) {
    let company = Scope::company("company");
    viking
        .forget_scope(ForgetScopeRequest {
            operation_id: "op-0".to_owned(),
            scope: company.clone(),
        })
        .unwrap();
    assert!(viking.check_health().unwrap().summary.ends_with("user memhost"));

    let green = viking.capture(capture("op-1", "The gate is green.")).unwrap().records.remove(0);
    assert_eq!(
        viking.capture(capture("op-1", "The gate is green.")).unwrap().records,
        std::slice::from_ref(&green)
    );
    let write = |text: &str| UpsertRequest {
        records: vec![RecordWrite {
            id: Some("Fact 1".to_owned()),
            text: text.to_owned(),
            metadata: Some(r#"{"topic":"door","n":1.50}"#.to_owned()),
            expires_at: Some("2030-01-01T12:00:00Z".to_owned()),
            ..RecordWrite::default()
        }],
        ..upsert(text, &[])
    };
    assert_eq!(viking.upsert_records(write("  The door is red.\n")).unwrap().records, ["Fact 1"]);
    assert_eq!(viking.upsert_records(write("  The door is blue.\n")).unwrap().records, ["Fact 1"]);

    let turn = |role: &str, text: &str| Turn {
        role: role.to_owned(),
        name: None,
        text: text.to_owned(),
        at: None,
    };
    let turns =
        vec![turn("user", "I like green tea."), turn("assistant", "There is nothing better.")];
    let payload = SourcePayload { turns, ..SourcePayload::default() };
    let talk = CaptureRequest { payload, ..residue("op-2", "") };
    let job = viking.capture(talk.clone()).unwrap().jobs.remove(0);
    assert_eq!(viking.capture(talk).unwrap().jobs, std::slice::from_ref(&job));
    let learnt = ended(viking, &job.provider_job_id);
    assert_eq!((learnt.job.status, learnt.records.len()), (JobStatus::Succeeded, 1), "{learnt:?}");
    assert!(learnt.usage[0].embedding_tokens > Some(0));
    let cancelled = viking
        .capture(residue("op-3", "I like black tea."))
        .unwrap()
        .jobs
        .remove(0)
        .provider_job_id;
    viking.cancel_job(cancelled.clone()).unwrap();
    let cancelled = ended(viking, &cancelled);
    assert_eq!((cancelled.job.status, cancelled.records.len()), (JobStatus::Cancelled, 0));

    let hits = viking.query(query("which colour is the gate?")).unwrap().snippets;
    assert_eq!(
        (hits[0].id.as_str(), hits[0].text.as_str()),
        (green.as_str(), "The gate is green.")
    );
    let similarity = |snippet: &Snippet| match snippet.score {
        Score::Similarity(score) => score,
        other => panic!("{other:?} is no similarity"),
    };
    assert!(hits.windows(2).all(|pair| similarity(&pair[0]) >= similarity(&pair[1])), "best first");
    let filter = |json: &str| QueryRequest {
        metadata_filter: Some(json.to_owned()),
        ..query("colour door gate tea")
    };
    let found = viking.query(filter(r#"{"topic":"door"}"#)).unwrap().snippets;
    assert_eq!((found.len(), found[0].text.as_str()), (1, "  The door is blue.\n"));
    assert_eq!(found[0].metadata.as_deref(), Some(r#"{"topic":"door","n":1.50}"#));
    assert!(viking.query(filter(r#"{"topic":"gate"}"#)).unwrap().snippets.is_empty());
    let other = Scope { agent_id: Some("other".to_owned()), ..company.clone() };
    assert!(
        viking
            .query(QueryRequest { scope: other, ..query("gate tea") })
            .unwrap()
            .snippets
            .is_empty()
    );

    let first = viking.list_records(list(None, 2)).unwrap();
    let Continuation::Next(cursor) = first.continuation else { panic!("there are three") };
    let second = viking.list_records(list(Some(cursor), 10)).unwrap();
    assert_eq!(
        (first.items.len(), second.items.len(), second.continuation),
        (2, 1, Continuation::End)
    );
    let children = |viking: &mut OpenViking, path: &str| {
        let page = viking.list_children(path.to_owned(), scope(), None, 10).unwrap();
        page.nodes.into_iter().map(|node| node.label).collect::<Vec<_>>()
    };
    assert_eq!(children(viking, "memories/memhost"), ["  The door is blue.", "The gate is green."]);
    assert_eq!(children(viking, "peers").len(), 1);
    assert!(viking.list_children("memories/nowhere".to_owned(), scope(), None, 10).is_err());

    let patch = Patch::Replacement(RecordWrite {
        text: "The gate is yellow.".to_owned(),
        ..RecordWrite::default()
    });
    let request = CorrectRequest {
        operation_id: "op-4".to_owned(),
        id: green.clone(),
        scope: scope(),
        patch,
    };
    viking.correct(request).unwrap();
    assert_eq!(
        viking.get_record(green.clone(), scope()).unwrap().snippet.unwrap().text,
        "The gate is yellow."
    );

    let gone = ["memories/memhost/nobody.md", "nobody"].map(str::to_owned);
    assert!(
        gone.iter().all(|id| viking.get_record(id.clone(), scope()).unwrap().snippet.is_none())
    );
    let ids = vec![
        green.clone(),
        "Fact 1".to_owned(),
        learnt.records[0].clone(),
        gone[0].clone(),
        green.clone(),
    ];
    let outcomes = viking.forget(forget(ids, scope())).unwrap().outcomes;
    let effects: Vec<_> = outcomes.into_iter().map(|outcome| outcome.effect).collect();
    let (hard, none) = (ForgetEffect::Hard, ForgetEffect::NotFound);
    assert_eq!(effects, [hard, hard, hard, none, none]);
    assert!(viking.get_record(green, scope()).unwrap().snippet.is_none());
    viking
        .forget_scope(ForgetScopeRequest { operation_id: "op-5".to_owned(), scope: company })
        .unwrap();
    assert!(viking.list_records(list(None, 2)).unwrap().items.is_empty());
}

#[test]
fn openviking_answers_as_expected() {
    let mut viking = open(json!({}));
    let key = std::env::var("OPENVIKING_API_KEY").unwrap_or_default();
    let recording =
        Recording::serve(FILE, "openviking 0.5.2", ADDRESS, &[("x-api-key", &key)], &[]);
    work_with(&mut viking);
    recording.end();
}
