//! The provider against the stand-in for AgentCore. `just vendors-record` starts it and runs this
//! test with `MEMHOST_RECORD_AGENTCORE`. botocore checks each request and answer while it is
//! recorded.

use memhost_sdk::testing::recorded::Recording;
use memhost_sdk::testing::{self, capture, forget, list, query, scope, upsert};
use memhost_sdk::types::*;
use memhost_sdk::{Correction, Erasure, Extraction, Health, Provider};

use super::open;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorded/stand-in.jsonl");
const OF: &str = "the stand-in for AgentCore, checked with botocore 1.44.5";

fn residue(id: &str, text: &str) -> CaptureRequest {
    let turn = |role: &str, text: &str| Turn {
        role: role.to_owned(),
        name: None,
        text: text.to_owned(),
        at: None,
    };
    let turns =
        vec![turn("user", text), turn("tool", "<memhost-recall>The sea is wide.</memhost-recall>")];
    CaptureRequest {
        mode: CaptureMode::CaptureResidue,
        payload: SourcePayload { turns, ..SourcePayload::default() },
        ..capture(id, "")
    }
}

#[test]
fn agentcore_answers_as_expected() {
    let mut provider = open(serde_json::json!({}));
    let times = &["timestamp", "eventTimestamp"];
    let recording = Recording::serve(FILE, OF, "MEMHOST_RECORD_AGENTCORE", &[], times);
    let company = Scope::company("company");
    let other = Scope { agent_id: Some("other".to_owned()), ..scope() };
    let erase =
        |id: &str| ForgetScopeRequest { operation_id: id.to_owned(), scope: company.clone() };
    provider.forget_scope(erase("op-0")).unwrap();
    assert!(provider.check_health().unwrap().summary.contains("memhost-AbCdEf0123"));

    // A capture is one record, whoever repeats it.
    let green = provider.capture(capture("op-1", "The gate is green.")).unwrap().records.remove(0);
    assert_eq!(
        provider.capture(capture("op-1", "The gate is green.")).unwrap().records,
        [green.as_str()]
    );
    testing::lose_storage();
    let hook = HookContext {
        hook_kind: HookKind::ManualCapture,
        triggered_at: "2026-01-01T00:00:00Z".to_owned(),
        actor_agent_id: None,
        heartbeat_run_id: None,
    };
    let again = CaptureRequest { hook: Some(hook), ..capture("op-1", "The gate is green.") };
    assert_eq!(provider.capture(again).unwrap().records, [green.as_str()]);

    let write = |text: &str| UpsertRequest {
        records: vec![RecordWrite {
            id: Some("fact 1/é".to_owned()),
            text: text.to_owned(),
            metadata: Some(r#"{"topic":"door","n":1.50,"other":"{\"a\": \"é\"}"}"#.to_owned()),
            ..RecordWrite::default()
        }],
        ..upsert(text, &[])
    };
    assert_eq!(provider.upsert_records(write("The door is red.")).unwrap().records, ["fact 1/é"]);
    assert_eq!(provider.upsert_records(write("The door is blue.")).unwrap().records, ["fact 1/é"]);
    let hits = provider.query(query("which colour is the gate?")).unwrap().snippets;
    assert_eq!(
        (hits[0].id.as_str(), hits[0].text.as_str()),
        (green.as_str(), "The gate is green.")
    );
    assert!(matches!(hits[0].score, Score::Similarity(score) if score > 0.3));
    let filter =
        |json: &str| QueryRequest { metadata_filter: Some(json.to_owned()), ..query("door gate") };
    let found = provider.query(filter(r#"{"topic":"door","n":1.5}"#)).unwrap().snippets;
    assert_eq!(
        (found.len(), found[0].text.as_str(), found[0].id.as_str()),
        (1, "The door is blue.", "fact 1/é")
    );
    assert_eq!(found[0].metadata, write("").records[0].metadata);
    assert!(provider.query(filter(r#"{"topic":"gate"}"#)).unwrap().snippets.is_empty());
    assert!(
        provider
            .query(QueryRequest { scope: other.clone(), ..query("gate") })
            .unwrap()
            .snippets
            .is_empty()
    );

    let patch = Patch::Replacement(RecordWrite {
        text: "The gate is yellow.".to_owned(),
        ..RecordWrite::default()
    });
    let correct = CorrectRequest {
        operation_id: "op-3".to_owned(),
        id: green.clone(),
        scope: scope(),
        patch,
    };
    assert_eq!(provider.correct(correct).unwrap().record_id, green);
    let corrected = provider.get_record(green.clone(), scope()).unwrap().snippet.unwrap();
    assert_eq!((corrected.text.as_str(), corrected.scope), ("The gate is yellow.", Some(scope())));
    assert!(provider.get_record(green.clone(), other.clone()).unwrap().snippet.is_none());

    // An event is extracted from, and its records are of the agent that it came from.
    let job =
        provider.capture(residue("op-4", "I like tea. I like ships.")).unwrap().jobs.remove(0);
    assert_eq!(job.status, JobStatus::Running);
    let again =
        provider.capture(residue("op-4", "I like tea. I like ships.")).unwrap().jobs.remove(0);
    assert_eq!(again.provider_job_id, job.provider_job_id);
    let done = provider.get_job(job.provider_job_id).unwrap().unwrap();
    assert_eq!(
        (done.job.status, done.job.record_count, done.records.len()),
        (JobStatus::Succeeded, Some(2), 2)
    );
    let made = provider.get_record(done.records[0].clone(), scope()).unwrap().snippet.unwrap();
    assert_eq!(made.scope.unwrap().agent_id.as_deref(), Some("agent"));
    assert!(
        provider
            .query(QueryRequest { scope: other, ..query("what do I like?") })
            .unwrap()
            .snippets
            .is_empty()
    );
    assert_eq!(provider.query(query("what do I like?")).unwrap().snippets.len(), 2);

    // A job that failed is started again.
    let bad = provider
        .capture(residue("op-5", "This is impossible."))
        .unwrap()
        .jobs
        .remove(0)
        .provider_job_id;
    let failed = provider.run_job(bad.clone()).unwrap().job;
    assert_eq!((failed.status, failed.is_retryable), (JobStatus::Failed, true));
    assert_eq!(failed.error.as_deref(), Some("the model did not answer"));
    assert_eq!(provider.retry_job(bad.clone()).unwrap().status, JobStatus::Running);
    assert_eq!(provider.retry_job(bad.clone()).unwrap().status, JobStatus::Running);
    assert_eq!(provider.get_job(bad).unwrap().unwrap().job.status, JobStatus::Succeeded);
    assert_eq!(provider.list_jobs(scope(), None, 10).unwrap().jobs.len(), 2);

    let first = provider.list_records(list(None, 3)).unwrap();
    let Continuation::Next(cursor) = first.continuation else { panic!("there are more") };
    assert_eq!(provider.list_records(list(Some(cursor), 3)).unwrap().items.len(), 2);
    let ids = vec![green, "fact 1/é".to_owned(), "nobody".to_owned(), done.records[0].clone()];
    let outcomes = provider.forget(forget(ids, scope())).unwrap().outcomes;
    let effects: Vec<_> = outcomes.into_iter().map(|outcome| outcome.effect).collect();
    let (hard, none) = (ForgetEffect::Hard, ForgetEffect::NotFound);
    assert_eq!(effects, [hard, hard, none, ForgetEffect::HistoryKept]);
    let erased = provider.forget_scope(erase("op-7")).unwrap();
    assert_eq!((erased.extent, erased.count), (Extent::Hard, Some(2)));
    assert!(provider.list_records(list(None, 3)).unwrap().items.is_empty());
    recording.end();
}
